"""What NVIDIA's GPU Operator brings into a cluster: here its namespace and the DaemonSet of its device plugin."""

from __future__ import annotations

from vgpuctl.sim.kube.machines import gpu_stack
from vgpuctl.sim.kube.machines.nodes import GPU
from vgpuctl.sim.kube.objects import Object

NAMESPACE = "gpu-operator"
DAEMON_SET = "nvidia-device-plugin-daemonset"


def device_plugin() -> Object:
    """Return the DaemonSet, with the names, the selector and the toleration of GPU Operator's manifest."""
    # Without its priority class: the simulated scheduler has no preemption.
    labels = {"app": DAEMON_SET}
    spec = {
        "nodeSelector": {gpu_stack.DEPLOYS_PLUGIN: gpu_stack.LABELS[gpu_stack.DEPLOYS_PLUGIN]},
        "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
        # It waits until driver and toolkit are up.
        "initContainers": [{"name": "toolkit-validation", "image": "gpu-operator-validator:1"}],
        "containers": [{"name": gpu_stack.CONTAINER, "image": "k8s-device-plugin:1"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": DAEMON_SET, "namespace": NAMESPACE, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }

"""The Node and Lease objects that a kubelet writes, and the conditions of a node."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vgpuctl.sim.inventory import VmSpec
from vgpuctl.sim.kube.objects import Object, at, micro_timestamp, owner_reference, set_condition, timestamp

#: Kubernetes: each kubelet renews a Lease of its node's name here.
LEASE_NAMESPACE = "kube-node-lease"
GPU = "nvidia.com/gpu"
VERSION = "v1.36.3"
#: Kubernetes: the taints of the node lifecycle controller: silent, not ready, and cordoned.
UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_CONDITION_TYPES = (*(kind for kind, _, _ in _PRESSURES), "Ready")


@dataclass(frozen=True, slots=True)
class Boot:
    """What one boot of a machine found. `devices`: GPUs that a device plugin has registered since. `gpus`: those of
    them that it offers now.
    """

    vm: VmSpec
    address: str
    id: str = ""
    devices: int = 0
    gpus: int = 0


def is_control_plane(name: str) -> bool:
    return name.startswith("infra")


def new_node(boot: Boot) -> Object:
    """Return the Node as a kubelet registers it."""
    vm = boot.vm
    labels = {f"{prefix}kubernetes.io/{key}": value for prefix in ("", "beta.") for key, value in _PLATFORM.items()}
    labels["kubernetes.io/hostname"] = vm.name
    if is_control_plane(vm.name):
        labels["node-role.kubernetes.io/control-plane"] = ""
    node: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": vm.name, "labels": labels}}
    # vSphere: `vsphere://` and the BIOS uuid, as the cloud provider writes it.
    node |= {"spec": {"providerID": f"vsphere://{vm.uuid}"}, "status": {"conditions": []}}
    _set_machine_fields(node["status"], boot)
    return node


_PLATFORM = {"os": "linux", "arch": "amd64"}


def _set_machine_fields(status: Object, boot: Boot) -> None:
    """Set the resources that a kubelet owns. Resources that other programs added stay."""
    vm = boot.vm
    resources = {"cpu": str(vm.cpus), "memory": f"{vm.memory_mib}Mi", "ephemeral-storage": "100Gi", "pods": "110"}
    for field, gpus in (("capacity", boot.devices), ("allocatable", boot.gpus)):
        status[field] = (status.get(field) or {}) | resources
        # Measured with a real kubelet: what a device plugin once offered stays, with a count of 0.
        if gpus or GPU in status[field]:
            status[field][GPU] = str(gpus)
    status["addresses"] = [{"type": "InternalIP", "address": boot.address}, {"type": "Hostname", "address": vm.name}]
    status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10250}}
    status["nodeInfo"] = _node_info(boot)


def _node_info(boot: Boot) -> Object:
    return {
        "machineID": boot.vm.uuid.replace("-", ""),
        # On a real node its first three fields may be byte-swapped. Here they never are.
        "systemUUID": boot.vm.uuid,
        "bootID": boot.id,
        "kernelVersion": "6.8.0-79-generic",
        "osImage": "Ubuntu 24.04.3 LTS",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kubeletVersion": VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def post_ready(node: Object, now: datetime, boot: Boot) -> None:
    """Set the status that a healthy kubelet posts: fresh heartbeats and the resources of this boot."""
    _set_machine_fields(node.setdefault("status", {}), boot)
    for kind, reason, message in _PRESSURES:
        _set(node, now, {"type": kind, "status": "False", "reason": reason, "message": message})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    _set(node, now, ready)


def post_unknown(node: Object, now: datetime) -> None:
    """Set what the node lifecycle controller writes for a silent kubelet. The last heartbeat stays."""
    present = {found["type"]: found for found in at(node, "status.conditions") or []}
    for kind in _CONDITION_TYPES:
        # Kubernetes: so the last heartbeat says since when the node is silent.
        # Measured: a lost node's `allocatable` stays as it was, too.
        heartbeat = present.get(kind, {}).get("lastHeartbeatTime") or timestamp(now)
        unknown = {"type": kind, "status": "Unknown", "reason": "NodeStatusUnknown"}
        unknown |= {"message": "Kubelet stopped posting node status.", "lastHeartbeatTime": heartbeat}
        set_condition(node, now, unknown)


def with_heartbeat(node: Object, now: datetime) -> Object:
    """Return the node with a new heartbeat. Thousands of these are made, so unchanged parts are shared and
    not copied.
    """
    time = timestamp(now)
    conditions = [found | {"lastHeartbeatTime": time} for found in node["status"]["conditions"]]
    return node | {"metadata": dict(node["metadata"]), "status": node["status"] | {"conditions": conditions}}


def _set(node: Object, now: datetime, fresh: Object) -> None:
    set_condition(node, now, fresh | {"lastHeartbeatTime": timestamp(now)})


def renewed(lease: Object, now: datetime) -> Object:
    # Kubernetes: written by the guest's clock, which may lag after a resume.
    spec = (lease.get("spec") or {}) | {"renewTime": micro_timestamp(now)}
    return lease | {"metadata": dict(lease["metadata"]), "spec": spec}


def new_lease(node: Object, now: datetime) -> Object:
    name = node["metadata"]["name"]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": LEASE_NAMESPACE,
            # Kubernetes: so the Lease goes with its node.
            "ownerReferences": [owner_reference(node, controller=False)],
        },
        # kubelet: NodeLeaseDurationSeconds is 40 by default, renewed every 10 s.
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": micro_timestamp(now)},
    }

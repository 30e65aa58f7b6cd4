"""The GPU stack inside a VM: driver, toolkit and device plugin. Without its plugin a node offers no GPU."""

from __future__ import annotations

import math
from collections.abc import Callable

from vgpuctl.sim.kube.machines.guesttime import GuestTime
from vgpuctl.sim.kube.machines.nodes import GPU
from vgpuctl.sim.kube.objects import Object, labels_of, requests_of
from vgpuctl.sim.kube.store import Store

#: GPU Operator: node feature discovery finds the card. The operator then sets these labels, and its device plugin's
#: DaemonSet selects the second one. On a node that lost its GPUs it sets the first to "false" and removes the second.
PRESENT = "nvidia.com/gpu.present"
DEPLOYS_PLUGIN = "nvidia.com/gpu.deploy.device-plugin"
LABELS = {PRESENT: "true", DEPLOYS_PLUGIN: "true"}
#: GPU Operator: the device plugin's container. NVIDIA's plain manifest calls it `nvidia-device-plugin-ctr`.
CONTAINER = "nvidia-device-plugin"


class GpuStack:
    """The stack of one VM with vGPUs, from its boot until it is powered off.

    `up`: driver and toolkit work, so the plugin's pod may start. `registered`: how many devices a plugin has registered
    since the boot, healthy or not.
    """

    __slots__ = ("_devices", "_plugin", "_round", "registered", "up")

    def __init__(self, devices: int, *, up: bool = False) -> None:
        self.up = up
        self.registered = devices if up else 0
        self._devices = devices
        self._plugin: str | None = "" if up else None
        self._round = 0

    @property
    def offered(self) -> int:
        """Return how many GPUs a pod can get: none without a plugin."""
        # Measured with a real kubelet: when the plugin was killed, allocatable fell to 0 and pods ran on.
        # A plugin that stood still with its VM stays registered, so its number is stale after a resume.
        return 0 if self._plugin is None else self.registered

    def interrupt(self) -> None:
        """The VM is suspended: driver and toolkit have to come up again after the resume."""
        self.up = False
        self._round += 1

    def come_up(self, time: GuestTime, after_s: float, then: Callable[[], None]) -> None:
        """Call `then` when the stack is up. An infinite time is a stack that never comes up, and costs no timer."""
        if self.up or math.isinf(after_s):
            return
        self._round += 1
        this_round = self._round

        def due() -> None:
            # A timer from before a suspend goes on after it, and says nothing about the stack after the resume.
            if this_round == self._round:
                self.up = True
                then()

        time.after(after_s, due)

    def register(self, plugin: str) -> None:
        """A plugin's pod has started. `plugin`: the pod's uid."""
        self._plugin, self.registered = plugin, self._devices

    def unregister(self, plugin: str) -> bool:
        """A plugin's pod has gone. Return True if it was the one that offered the GPUs."""
        was_last = self._plugin == plugin
        self._plugin = None if was_last else self._plugin
        return was_last


def is_plugin(pod: Object) -> bool:
    return any(container["name"].startswith(CONTAINER) for container in pod["spec"]["containers"])


def requests_gpu(pod: Object) -> bool:
    return requests_of(pod).get(GPU, 0.0) > 0


def label_node(store: Store, name: str, *, has_gpus: bool) -> None:
    """Set the operator's labels on a node as its VM is now. A node that never had GPUs has none of them."""
    node = store.get("nodes", "", name)
    if node is None:
        return
    labels = labels_of(node)
    wanted = _labels(labels, has_gpus=has_gpus)
    if wanted != labels:
        store.edit("nodes", "", name, lambda found: found["metadata"].update(labels=wanted))


def _labels(labels: dict[str, str], *, has_gpus: bool) -> dict[str, str]:
    if has_gpus:
        return labels | LABELS
    if PRESENT not in labels:
        return labels
    return {key: value for key, value in labels.items() if key != DEPLOYS_PLUGIN} | {PRESENT: "false"}

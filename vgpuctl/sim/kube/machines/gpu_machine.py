"""A machine of a node: its VM may have vGPUs, and then it has a GPU stack."""

from __future__ import annotations

from abc import ABC, abstractmethod

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.kube.machines.gpu_stack import GpuStack, is_plugin, label_node, requests_gpu
from vgpuctl.sim.kube.machines.machine import Machine
from vgpuctl.sim.kube.machines.machine_address import MachineAddress
from vgpuctl.sim.kube.objects import Object, uid_of
from vgpuctl.sim.kube.store import Store


class GpuMachine(Machine, ABC):
    """Keeps the GPU stack in step with the VM's power, and says what a kubelet may offer and start."""

    def __init__(self, clock: Clock, durations: Durations, place: MachineAddress) -> None:
        super().__init__(clock, durations)
        self.place = place
        # Most VMs of a large estate have no vGPU, and so no stack.
        self._stack: GpuStack | None = None

    @property
    def gpus(self) -> tuple[int, int]:
        """Return how many GPUs a device plugin has registered since the boot, and how many of them it offers now."""
        return (self._stack.registered, self._stack.offered) if self._stack else (0, 0)

    def boot(self, gpus: int) -> None:
        super().boot(gpus)
        self._stack = GpuStack(gpus) if gpus else None

    def freeze(self) -> None:
        super().freeze()
        if self._stack is not None:
            self._stack.interrupt()

    def halt(self) -> None:
        super().halt()
        self._stack = None

    def start_now(self, gpus: int) -> None:
        super().start_now(gpus)
        self._stack = GpuStack(gpus, up=self.place.vm.has_device_plugin) if gpus else None

    def sleep_now(self, gpus: int) -> None:
        self._stack = GpuStack(gpus) if gpus else None
        super().sleep_now(gpus)

    def lacks_gpus(self, pod: Object) -> bool:
        """Return True if the device manager has no GPU for this pod."""
        return requests_gpu(pod) and not self.gpus[1]

    def waits_for_gpu_stack(self, pod: Object) -> bool:
        # GPU Operator: the plugin's init container waits until driver and toolkit are up.
        return is_plugin(pod) and (self._stack is None or not self._stack.up)

    def note_started(self, pod: Object) -> None:
        """A pod has started. If it is a plugin, it offers the GPUs."""
        if self._stack is not None and is_plugin(pod):
            self._stack.register(uid_of(pod))

    def note_gone(self, pod: Object) -> None:
        """A pod's object is gone. While the VM is suspended, its kubelet does not see that yet."""
        if self._stack is not None and is_plugin(pod):
            self._time.after(0.0, lambda: self._plugin_gone(pod))

    @abstractmethod
    def post_gpus(self) -> None:
        """Post another number of GPUs."""

    @abstractmethod
    def _gpu_stack_is_up(self) -> None:
        """Start the device plugins that waited for it."""

    def _start_gpu_stack(self, store: Store) -> bool:
        """Let the GPU stack come up, if there is one. Return True if plugins have to wait for it."""
        label_node(store, self.place.vm.name, has_gpus=self._stack is not None)
        if self._stack is None or self._stack.up:
            return False
        own_s = self.place.vm.gpu_stack_s
        takes_s = self._durations.gpu_stack_s if own_s is None else own_s
        self._stack.come_up(self._time, takes_s, self._gpu_stack_is_up)
        return True

    def _plugin_gone(self, pod: Object) -> None:
        # kubelet: it sees that the plugin's socket is gone.
        if self._stack is not None and self._stack.unregister(uid_of(pod)):
            self.post_gpus()

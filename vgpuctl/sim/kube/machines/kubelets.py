"""The machines inside all VMs, most of them with a kubelet."""

from __future__ import annotations

import random
from collections.abc import Iterator

from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.machines.kubelet import Kubelet
from vgpuctl.sim.kube.machines.machine import Machine
from vgpuctl.sim.kube.machines.machine_address import MachineAddress
from vgpuctl.sim.kube.store import Change, Key, key_of


class Kubelets:
    def __init__(
        self, context: ControllerContext, inventory: Inventory, durations: Durations, rng: random.Random
    ) -> None:
        self._context = context
        self._durations = durations
        self._kubelets = {
            vm.name: Kubelet(context, MachineAddress(vm, number), durations, rng)
            for number, vm in enumerate(vm for vm in inventory.vms if vm.has_node)
        }
        # Machines without a kubelet. Those that are off at the beginning are created on first use.
        self._others = {vm.name: self._other(on=True) for vm in inventory.vms if vm.powered_on and not vm.has_node}
        for vm in (vm for vm in inventory.vms if vm.suspended):
            self.machine(vm.name).sleep_now(len(vm.vgpus))
        self._queue = Queue(context.clock, self._reconcile)
        context.store.subscribe(["pods"], self._pod_changed)

    def __iter__(self) -> Iterator[Kubelet]:
        return iter(self._kubelets.values())

    def __getitem__(self, vm: str) -> Kubelet:
        return self._kubelets[vm]

    def machine(self, vm: str) -> Machine:
        """Return a VM's machine. A VM created later has one too, but it never joins the cluster."""
        # VMs of other purposes run guests too: they boot, freeze and shut down, but are no nodes.
        if vm in self._kubelets:
            return self._kubelets[vm]
        return self._others.setdefault(vm, self._other(on=False))

    def exists(self, vm: str) -> bool:
        return self.machine(vm).exists

    def powered(self, vm: str) -> bool:
        return self.machine(vm).powered

    def _other(self, *, on: bool) -> Machine:
        machine = Machine(self._context.clock, self._durations)
        if on:
            machine.start_now(gpus=0)
        return machine

    def _pod_changed(self, change: Change) -> None:
        kubelet = self._kubelets.get(change.object["spec"].get("nodeName") or "")
        if kubelet is None:
            return
        if change.type == "DELETED":
            kubelet.pods.forget(change.object)
        elif kubelet.reporting:
            self._queue.add(key_of(change.object))

    def _reconcile(self, key: Key) -> None:
        pod = self._context.store.get("pods", *key)
        kubelet = self._kubelets.get(pod["spec"].get("nodeName") or "") if pod else None
        if pod is not None and kubelet is not None:
            kubelet.sync_pod(pod)

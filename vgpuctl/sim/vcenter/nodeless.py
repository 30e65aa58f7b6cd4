"""Guests of both kinds: Kubernetes nodes, and machines of which no cluster knows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.guests import Guests
from vgpuctl.sim.inventory import Durations, VmSpec


class EveryGuest:
    """Passes on what concerns nodes; any other guest is up as soon as its VM is, and frozen with it."""

    def __init__(self, nodes: Guests, vms: tuple[VmSpec, ...], clock: Clock, durations: Durations) -> None:
        self._nodes = nodes
        self._clock = clock
        self._durations = durations
        self._with_node = {vm.name for vm in vms if vm.has_node}
        self._up = {vm.name for vm in vms if vm.powered_on and not vm.has_node}

    def boot(self, vm: str, gpus: int) -> None:
        if vm in self._with_node:
            self._nodes.boot(vm, gpus)
        else:
            self._up.add(vm)

    def freeze(self, vm: str) -> None:
        if vm in self._with_node:
            self._nodes.freeze(vm)
        else:
            self._up.discard(vm)

    def thaw(self, vm: str) -> None:
        if vm in self._with_node:
            self._nodes.thaw(vm)
        else:
            self._up.add(vm)

    def halt(self, vm: str) -> None:
        if vm in self._with_node:
            self._nodes.halt(vm)
        else:
            self._up.discard(vm)

    def shut_down(self, vm: str, then: Callable[[], None]) -> None:
        if vm in self._with_node:
            self._nodes.shut_down(vm, then)
        else:
            self._clock.after(self._durations.guest_shutdown_s, partial(self._down, vm, then))

    def running(self, vm: str) -> bool:
        return self._nodes.running(vm) if vm in self._with_node else vm in self._up

    def _down(self, vm: str, then: Callable[[], None]) -> None:
        if vm in self._up:
            then()

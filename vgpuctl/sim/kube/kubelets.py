"""All kubelets, and what the power of their VMs does to them."""

from __future__ import annotations

import random
from collections.abc import Callable

from vgpuctl.sim.inventory import Inventory
from vgpuctl.sim.kube.ground import Ground
from vgpuctl.sim.kube.kubelet import Kubelet, Pace, Place
from vgpuctl.sim.kube.queue import Queue
from vgpuctl.sim.kube.store import Change, Key, key_of


class Kubelets:
    def __init__(self, ground: Ground, inventory: Inventory, pace: Pace, chance: random.Random) -> None:
        self._ground = ground
        self._pace = pace
        self._by_vm = {
            vm.name: Kubelet(ground, Place(vm, number), pace, chance) for number, vm in enumerate(inventory.vms)
        }
        self._queue = Queue(ground.clock, self._look_at)
        ground.store.subscribe(["pods"], self._heard)

    def __getitem__(self, vm: str) -> Kubelet:
        return self._by_vm[vm]

    def shut_down(self, vm: str, then: Callable[[], None]) -> None:
        """In order: the guest goes down after a while, unless the power went before."""
        kubelet = self._by_vm[vm]

        def down() -> None:
            kubelet.halt()
            then()

        kubelet.after(self._pace.durations.guest_shutdown_s, down)

    def _heard(self, change: Change) -> None:
        kubelet = self._by_vm.get(change.object["spec"].get("nodeName") or "")
        if kubelet is None:
            return
        if change.type == "DELETED":
            kubelet.forget(change.object)
        elif kubelet.speaking:
            self._queue.add(key_of(change.object))

    def _look_at(self, key: Key) -> None:
        pod = self._ground.store.get("pods", *key)
        kubelet = self._by_vm.get(pod["spec"].get("nodeName") or "") if pod else None
        if pod is not None and kubelet is not None:
            kubelet.look_at(pod)

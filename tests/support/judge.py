"""The laws as the simulated world itself can tell them: by what arrives there, with no word of the product's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from vgpuctl.kube.client import Object
from vgpuctl.model.conduct import Asleep, Conduct
from vgpuctl.model.record import ON_SWITCH, PREFIX
from vgpuctl.sim.kube.api.request import Request, Target
from vgpuctl.sim.kube.controllers.volumes import disks_of
from vgpuctl.sim.kube.objects import at, is_finished, is_leaving, is_mirror, name_of, uid_of
from vgpuctl.sim.vcenter.physics.records import Operation, Power, Vm
from vgpuctl.sim.world import World

#: After somebody else woke a VM, nobody knows for a while whether its node is truly back: no mark of ours tells it.
WOKEN_BY_OTHERS_S = 60.0
Reply = TypeVar("Reply")
DOWN = {Operation.SUSPEND, Operation.POWER_OFF}


class Judge:
    """`broken`: each law that a write broke. `foreign`: the nodes that bear a cordon of somebody else's.

    `conducts`: of each worker, what its timetable says of how to go about it.
    `run`: which of the product's processes is at work; people are 0. `lag_s`: what was younger when a write
    was sent, nobody could know. `late_by_s`: how long the write that arrives has hung.
    """

    def __init__(self, world: World, conducts: Mapping[str, Conduct]) -> None:
        self._world, self.conducts = world, conducts
        self.broken: list[str] = []
        self.foreign: set[str] = set()
        self.run, self.lag_s, self.late_by_s = 0, 0.0, 0.0
        self._powered: dict[str, list[tuple[float, int]]] = {}
        self._sent_off: dict[str, float] = {}

    def powers(self, name: str, by: int) -> None:
        """Somebody asks for another power state."""
        self._powered.setdefault(name, []).append((self._world.clock.now_s, by))

    def stops(self, vm: Vm, *, suspended: bool) -> None:
        """Law 1: when a stop arrives, no pod is there that should have been moved, nor a disk that none there uses."""
        if vm.power is not Power.ON:
            return
        pods = self._world.kubernetes.store.where("pods", "spec.nodeName", vm.name)
        if left := [name_of(pod) for pod in pods if _should_leave(pod) and not (suspended and _sleeps_along(pod))]:
            self._breaks(f"law 1: {vm.name} is stopped while it runs {' '.join(left)}")
        if left := self._forgotten_disks(vm.name, pods):
            self._breaks(f"law 1: {vm.name} is stopped and keeps {' '.join(left)}")
        if suspended:
            self._takes_turns(vm)
        elif self.conducts[vm.name].asleep is Asleep.SUSPEND:
            self._breaks(f"conduct: {vm.name} was to be suspended, and goes off")

    def _forgotten_disks(self, node: str, pods: list[Object]) -> list[str]:
        used = {disk for pod in pods for disk in disks_of(self._world.kubernetes.context, pod)}
        there = (item for item in self._world.kubernetes.store.all("volumeattachments"))
        mine = {at(item, "spec.source.persistentVolumeName") for item in there if item["spec"]["nodeName"] == node}
        return sorted(mine - used)

    def _takes_turns(self, vm: Vm) -> None:
        """No more VMs of a host, or of all that share the datastore, are suspended at once than the timetable says."""
        conduct = self.conducts[vm.name]
        rest = (other for other in self._world.estate.vms.values() if other is not vm)
        going = [other for other in rest if _is_being_suspended(other) and not self._is_news(other.name)]
        here = [other for other in going if other.host is vm.host]
        for most, others in ((conduct.suspends_a_host, here), (conduct.suspends_a_datastore, going)):
            if most is not None and len(others) >= most:
                self._breaks(f"conduct: {vm.name} is suspended while {len(others)} others are")

    def patches(self, node: str, request: Request, answer: Callable[[], Reply]) -> Reply:
        """Law 3: only our nodes, others' cordons stay, and a cordon of ours says that it is ours."""
        before = self._node(node)
        reply = answer()
        if node not in self.conducts:
            self._breaks(f"law 3: {node} is no worker of ours")
        metadata = json.loads(request.body).get("metadata", {})
        recorded = any(key.startswith(PREFIX) and value for key, value in metadata.get("annotations", {}).items())
        if not _cordoned(before) and _cordoned(self._node(node)) and not recorded:
            self._breaks(f"law 3: {node} is cordoned, and nothing says by whom")
        if _cordoned(before) and not _cordoned(self._node(node)):
            self._uncordoned(node)
        return reply

    def scales(self, target: Target, answer: Callable[[], Reply]) -> Reply:
        """Law 3: a workload's size is changed only to zero, with what it was on it, and back to just that."""
        of = target.kind.plural, target.namespace, target.name
        was = _size_and_mark(self._world.kubernetes.store.get(*of))
        reply = answer()
        now = _size_and_mark(self._world.kubernetes.store.get(*of))
        slept = was[1] is None and now == (0, str(was[0]))
        if not (now == was or slept or (was[0] == 0 and now == (int(was[1] or -1), None))):
            self._breaks(f"law 3: {target.name} was {was}, and is {now}")
        return reply

    def _uncordoned(self, node: str) -> None:
        if node in self.foreign:
            self._breaks(f"law 3: the cordon of {node} was somebody else's")
            self.foreign.discard(node)
        vm = self._world.estate.vms[node]
        task = vm.running_task
        down = vm.power is not Power.ON or vm.shutting_down or (task is not None and task.operation in DOWN)
        unknown_s = self.lag_s + self.late_by_s
        if down and not self._powered_by_others(node, unknown_s):
            self._breaks(f"law 5: {node} is uncordoned and goes down")
        silent = not self._world.kubernetes.kubelets[node].reporting
        if not down and silent and not self._powered_by_others(node, unknown_s + WOKEN_BY_OTHERS_S):
            self._breaks(f"law 5: {node} is uncordoned and is not truly back")

    def _is_news(self, name: str) -> bool:
        """Its power was last changed by somebody else, and that cannot be seen yet."""
        return self._powered_by_others(name, self.lag_s + self.late_by_s)

    def _powered_by_others(self, name: str, within_s: float) -> bool:
        since_s = self._world.clock.now_s - within_s
        return any(when_s >= since_s and by != self.run for when_s, by in self._powered.get(name, ()))

    def evicts(self, namespace: str, name: str, uid: str, answer: Callable[[], Reply]) -> Reply:
        """Law 4: who goes is the pod that was seen."""
        before = self._world.kubernetes.store.get("pods", namespace, name)
        was_leaving = before is None or is_leaving(before)
        if before is not None and uid_of(before) == uid:
            self._not_again(before) if was_leaving else self._wakes_nobody(before)
        reply = answer()
        after = self._world.kubernetes.store.get("pods", namespace, name)
        if not was_leaving and (after is None or is_leaving(after)):
            self._sent_off[uid] = self._world.clock.now_s
        if before is not None and not was_leaving and uid_of(before) != uid and (after is None or is_leaving(after)):
            self._breaks(f"law 4: {name} was evicted, and is not the pod that was seen")
        return reply

    def _not_again(self, pod: Object) -> None:
        """Law 6: whoever was sent off, and could be seen to go, is not sent off once more."""
        since_s = self._sent_off.get(uid_of(pod))
        if since_s is not None and self._world.clock.now_s - since_s > self.lag_s + self.late_by_s:
            self._breaks(f"law 6: {name_of(pod)} is evicted twice")

    def _wakes_nobody(self, pod: Object) -> None:
        """Law 1: a pod that may sleep along is left alone."""
        conduct = self.conducts.get(pod["spec"].get("nodeName") or "")
        if conduct and conduct.asleep is Asleep.SUSPEND and _sleeps_along(pod):
            self._breaks(f"law 1: {name_of(pod)} was to sleep along, and is evicted")

    def _node(self, name: str) -> Object | None:
        return self._world.kubernetes.store.get("nodes", "", name)

    def _breaks(self, law: str) -> None:
        self.broken.append(f"{law} ({self._world.clock.now_s:.1f} s)")


def _size_and_mark(workload: Object | None) -> tuple[int, str | None]:
    found = workload or {"metadata": {}, "spec": {"replicas": -1}}
    return found["spec"]["replicas"], (found["metadata"].get("annotations") or {}).get(f"{PREFIX}replicas-before")


def _should_leave(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    return not (is_mirror(pod) or is_finished(pod) or any(owner["kind"] == "DaemonSet" for owner in owners))


def _sleeps_along(pod: Object) -> bool:
    """All that ask for it here tolerate it, too."""
    asks = (pod["metadata"].get("annotations") or {}).get(ON_SWITCH) == "freeze"
    return asks and not is_leaving(pod) and not is_finished(pod)


def _is_being_suspended(vm: Vm) -> bool:
    return vm.running_task is not None and vm.running_task.operation is Operation.SUSPEND


def _cordoned(node: Object | None) -> bool:
    return bool(node and node["spec"].get("unschedulable"))

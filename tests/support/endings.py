"""How an adventure must end: law 5 for each timetable, then 6, 3, and what was to sleep along has slept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vgpuctl.engine.reactor import Decision
from vgpuctl.model.conduct import OnStuck
from vgpuctl.model.fleet import Worker
from vgpuctl.model.record import ASLEEP
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.model.wait import UNDER_WAY
from vgpuctl.sim.kube.objects import is_leaving, uid_of

if TYPE_CHECKING:
    from tests.support.adventures import Adventure

TRIES = 3
#: What ends a pod that sleeps along although nobody drains it.
ENDS_PODS = ("delete-pod", "delete-node")


class Ending:
    """Calm weather: each timetable is put into one of its shifts; `broken` tells what is not as it must be."""

    def __init__(self, lived: Adventure) -> None:
        self._lived = lived
        self.broken: list[str] = []

    def judge(self) -> list[str]:
        for table in self._lived.tables:
            self._ends_well(table, self._lived.chance.choice(list(table.shifts.values())))
        lost = self._lived.judge.foreign - self._lived.cordoned()
        self.broken += [f"law 3: the cordon of {name} is gone" for name in sorted(lost)]
        self._dreamers_are_there()
        return self.broken

    def _ends_well(self, table: Timetable, shift: Shift) -> None:
        """The shift is there or somebody was told why not, then nothing is left to do, and nobody else was touched."""
        others = self._of_others(table)
        for _ in range(TRIES):
            known = self._lived.fleet().workloads.keys()
            ended = self._lived.switch(shift.name)
            came_meanwhile = self._lived.fleet().workloads.keys() - known
            if not ended.finished or not (out_of_place(self._lived, table, shift) or came_meanwhile):
                break
        told = self._told(table, ended)
        if not ended.finished and not told:
            self.broken.append(f"law 5: {shift.name} never ends: {dict(ended.waits)}")
        out = out_of_place(self._lived, table, shift)
        left = {host: why for host, why in out.items() if host not in told}
        self.broken += [f"law 5: {shift.name} is not on {host}: {why}; {_state(ended)}" for host, why in left.items()]
        if not out and not told:
            self._workloads_are_as_in(table, shift)
        sent = len(self._lived.sent)
        if not out and (not self._lived.switch(shift.name).finished or len(self._lived.sent) > sent):
            self.broken.append(f"law 6: a repeated run writes {self._lived.sent[sent:]}")
        if others != self._of_others(table):
            self.broken.append(f"law 3: {shift.name} has touched workers of another timetable")

    def _workloads_are_as_in(self, table: Timetable, shift: Shift) -> None:
        """At zero and marked, or of their first size: nobody but the product scales here."""
        for key, workload in self._lived.fleet().workloads.items():
            if any(each.scales(workload) for each in table.shifts.values()):
                asleep = shift.scales(workload)
                wanted = (0, True) if asleep else (self._lived.sizes[workload.name], False)
                found = workload.replicas, workload.scaled is not None
                if found != wanted:
                    self.broken.append(f"law 5: {key} is {found} and not {wanted} in {shift.name}")

    def _of_others(self, table: Timetable) -> set[tuple[object, ...]]:
        """What a switch changes, of all who obey another timetable."""
        every = [worker for worker in self._lived.fleet().workers.values() if not table.keeps(worker.name, "")]
        return {(w.name, w.power, w.vgpus, w.node and w.node.unschedulable) for w in every}

    def _told(self, table: Timetable, ended: Decision) -> set[str]:
        """The hosts of which a report says why they are not in this shift, for a reason that the world gives."""
        conduct, state, fleet = table.conduct, ended.state, self._lived.fleet()
        told = {refusal.host for refusal in self._lived.refusals if refusal.message}
        for host, cause in {**state.going_back, **state.gave_up, **state.held_back}.items():
            if "did not drain within" in str(cause) or self._hindered:
                told.add(host)
        if not ended.finished and conduct.on_stuck is OnStuck.WAIT:
            told |= {fleet.host_of(step.subject) for step, wait in ended.waits.items() if wait != UNDER_WAY}
        return set(fleet.hosts) if told and conduct.all_or_nothing else told

    @property
    def _hindered(self) -> bool:
        """By what people have left behind."""
        return bool(self._lived.judge.foreign or self._lived.people.bare)

    def _dreamers_are_there(self) -> None:
        """The same pods as in the beginning, unless people have ended one."""
        if any(act in told for told in self._lived.people.told for act in ENDS_PODS):
            return
        there = {uid_of(pod) for pod in self._lived.world.kubernetes.store.all("pods") if not is_leaving(pod)}
        lost = sorted(name for name, uid in self._lived.dreamers.items() if uid not in there)
        self.broken += [f"law 1: {name} was to sleep along, and is gone" for name in lost]


class Homes:
    """In which shift each host was before a switch: where that goes back, it goes back there."""

    def __init__(self, lived: Adventure, shift: str) -> None:
        self._lived, self._table = lived, lived.files.timetable_of(shift, None)
        mine = self._table.workers(lived.fleet())
        self._shifts: dict[str, Shift] = {}
        for each in self._table.shifts.values():
            not_so = {worker.host for worker in mine if not each.as_wanted(worker)}
            self._shifts |= dict.fromkeys({worker.host for worker in mine} - not_so, each)

    def missed(self, ended: Decision) -> list[str]:
        """Law 5, as long as nobody else has done anything."""
        if not ended.finished or ended.state.stopping or self._lived.people.told:
            return []
        found = []
        for host in ended.state.going_back.keys() & self._shifts.keys() - ended.state.gave_up.keys():
            if why := out_of_place(self._lived, self._table, self._shifts[host]).get(host):
                found.append(f"law 5: {host} went back, and not to {self._shifts[host].name}: {why}")
        return found


def out_of_place(lived: Adventure, table: Timetable, shift: Shift) -> dict[str, str]:
    """The hosts where something is not as the shift wants it, and what."""
    mine = table.workers(lived.fleet())
    return {worker.host: why for worker in mine if (why := _wrong(lived, worker, shift))}


def _wrong(lived: Adventure, worker: Worker, shift: Shift) -> str:
    node, foreign, awake = worker.node, worker.name in lived.judge.foreign, shift.wakes(worker)
    if not shift.as_wanted(worker):
        return f"{worker.name} is {worker.power} with {' '.join(worker.vgpus)}"
    if node is None:
        return f"{worker.name} has no node" if awake else ""
    if awake and (node.record is not None or node.unschedulable is not foreign):
        return f"{worker.name} is awake, and {'cordoned' if node.unschedulable else 'marked'}"
    if not awake and not (node.unschedulable and node.record and node.record.state == ASLEEP):
        return f"{worker.name} sleeps, and does not say so"
    return ""


def _state(ended: Decision) -> str:
    state = ended.state
    return f"back: {dict(state.going_back)} gave up: {dict(state.gave_up)} held: {dict(state.held_back)}"

"""The reactor driven in virtual time over a world that obeys requests after a while, or does not."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.support.fleets import with_node, with_worker
from vgpuctl.engine.dispatcher import Moment, Send
from vgpuctl.engine.reactor import Caches, Decision, Goal, decide
from vgpuctl.engine.run_state import RunState
from vgpuctl.model.fleet import Fleet, Power, Task
from vgpuctl.model.pods import Pod
from vgpuctl.model.record import read_record
from vgpuctl.model.requests import (
    AttachVgpus,
    DeletePod,
    Evict,
    PatchMachine,
    PatchNode,
    PowerOffVm,
    PowerOnVm,
    ShutDownGuest,
    SuspendVm,
)
from vgpuctl.planning.laws import broken_by

LONGEST_S = 7200.0

Refuse = Callable[[Send, int], tuple[str, bool] | None]


@dataclass
class VirtualWorld:
    """Durations by kind of request; `refuse` may refuse a request: (why, may it be tried again); `fail` may let the
    task of one end with a fault. `deaf`: guests that take no notice of being asked to shut down. `slow`: how many times
    as long as usual all of a worker's things take."""

    fleet: Fleet
    goal: Goal
    suspend_s: float = 3.0
    start_s: float = 4.0
    drain_s: float = 2.0
    back_s: float = 1.0
    refuse: Refuse = lambda send, nth: None
    fail: Callable[[Send], Task | None] = lambda send: None
    deaf: frozenset[str] = frozenset()
    slow: Callable[[str], float] = lambda worker: 1.0
    now_s: float = 0.0
    state: RunState = field(default_factory=RunState)
    sent: list[tuple[float, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _task_numbers: itertools.count[int] = field(default_factory=itertools.count)
    _seen: dict[str, int] = field(default_factory=dict)
    _caches: Caches = field(default_factory=Caches)

    def run(self, until_s: float = LONGEST_S) -> Decision:
        """Look, send, let time pass; until it is finished or time is up."""
        while True:
            decision = decide(self.goal, self.fleet, self.state, Moment(now_s=self.now_s, utc="now"), self._caches)
            self.state = decision.state
            if decision.finished or self.now_s >= until_s:
                return decision
            for send in decision.sends:
                self._take(send)
            if not decision.sends:
                self._pass_time()

    def at(self, when_s: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when_s, next(self._order), event))

    def _pass_time(self) -> None:
        due = self._events[0][0] if self._events else self.now_s + 0.5
        self.now_s = min(due, self.now_s + 0.5)
        while self._events and self._events[0][0] <= self.now_s:
            heapq.heappop(self._events)[2]()

    def _take(self, send: Send) -> None:
        self.sent.append((self.now_s, str(send.key)))
        if law := broken_by(send.request, self.fleet):
            self.broken.append(law)
        nth = self._seen[str(send.key)] = self._seen.get(str(send.key), 0) + 1
        refused = self.refuse(send, nth)
        if refused is not None:
            why, passing = refused
            self.state = self.state.answered(send.key, self.now_s, error=why, passing=passing)
            return
        fault = self.fail(send)
        task = self._failing(send, fault) if fault else self._carry_out(send)
        self.state = self.state.answered(send.key, self.now_s, task=task, error="")

    def _failing(self, send: Send, fault: Task) -> str:
        name = send.request.worker  # type: ignore[union-attr]
        self.fleet = with_worker(self.fleet, name, tasks=(fault,))
        return fault.key

    def _carry_out(self, send: Send) -> str | None:
        match send.request:
            case SuspendVm(worker=name):
                return self._task(name, "suspend", self.suspend_s * self.slow(name), power=Power.SUSPENDED)
            case ShutDownGuest(worker=name):
                if name not in self.deaf:
                    self.at(self.now_s + self.suspend_s, lambda: self._off(name))
            case PowerOffVm(worker=name):
                return self._task(name, "powerOff", 0.1, power=Power.OFF)
            case AttachVgpus(worker=name, vgpus=vgpus):
                return self._task(name, "reconfigure", 0.1, vgpus=vgpus, memory_locked=True)
            case PowerOnVm(worker=name):
                slow = self.slow(name)
                self.at(self.now_s + (self.start_s + self.back_s) * slow, lambda: self._back(name))
                return self._task(name, "powerOn", self.start_s * slow, power=Power.ON)
            case Evict(pod=pod):
                self._evicted(pod)
                self.at(self.now_s + self.drain_s * self.slow(pod.node or ""), lambda: self._gone(pod))
            case DeletePod(pod=pod):
                self._with_pods(lambda p: replace(p, terminating=True) if p.uid == pod.uid else p)
                self.at(self.now_s + self.drain_s, lambda: self._gone(pod))
            case PatchNode():
                self._patched(send.request)
            case PatchMachine(worker=name, machine=machine, shield=shield):
                self.fleet = with_worker(self.fleet, name, machine=replace(machine, shielded=shield, ours=shield))
        return None

    def _task(self, name: str, kind: str, takes_s: float, **changes: object) -> str:
        key = f"task-{next(self._task_numbers)}"
        running = Task(key=key, kind=kind, running=True)
        self.fleet = with_worker(self.fleet, name, tasks=(running,))

        def end() -> None:
            self.fleet = with_worker(self.fleet, name, tasks=(replace(running, running=False),), **changes)

        self.at(self.now_s + takes_s, end)
        return key

    def _off(self, name: str) -> None:
        self.fleet = with_worker(self.fleet, name, power=Power.OFF, shutting_down=False)

    def _back(self, name: str) -> None:
        self.fleet = with_node(self.fleet, name, ready=True, lease_renewed=f"L{self.now_s}", heartbeat=f"H{self.now_s}")

    def _evicted(self, pod: Pod) -> None:
        """As the API server does: the pod is terminating and its budgets are spent at once."""
        self._with_pods(lambda p: replace(p, terminating=True) if p.uid == pod.uid else p)
        self._spend(pod, -1)

    def _gone(self, pod: Pod) -> None:
        """Its replacement is Ready elsewhere at the same moment, so its budgets are full again."""
        self._with_pods(lambda p: None if p.uid == pod.uid else p)
        self._spend(pod, +1)

    def _with_pods(self, change: Callable[[Pod], Pod | None]) -> None:
        for name, worker in self.fleet.workers.items():
            if worker.node:
                pods = tuple(changed for p in worker.node.pods if (changed := change(p)) is not None)
                if pods != worker.node.pods:
                    self.fleet = with_node(self.fleet, name, pods=pods)

    def _spend(self, pod: Pod, number: int) -> None:
        over = list(self.fleet.budgets_over(pod))
        budgets = (replace(b, allowed=b.allowed + number) if b in over else b for b in self.fleet.budgets)
        self.fleet = replace(self.fleet, budgets=tuple(budgets))

    def _patched(self, patch: PatchNode) -> None:
        node = self.fleet.worker(patch.node).node
        assert node is not None
        labels = {k: v for k, v in {**node.labels, **patch.labels}.items() if v is not None}
        annotations = {k: v for k, v in patch.annotations.items() if v is not None}
        changes: dict[str, object] = {"labels": labels}
        if patch.annotations:
            changes["record"] = read_record(labels, annotations)
        if patch.unschedulable is not None:
            changes["unschedulable"] = patch.unschedulable
        self.fleet = with_node(self.fleet, patch.node, **changes)

    def awake(self) -> set[str]:
        return {name for name, worker in self.fleet.workers.items() if worker.on}

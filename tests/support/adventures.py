"""One integer, one adventure: estate, conduct, faults, late pictures, crashes and people all follow from it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from tests.support.circumstances import DREAMER, drawn, with_scale, with_unkind_guests
from tests.support.clients import Response
from tests.support.endings import Ending, Homes
from tests.support.judge import Judge
from tests.support.meddling import Meddling
from tests.support.overfull import overfull
from tests.support.rehearsal import LOOK_S, Rehearsal
from tests.support.runs import Ends
from tests.support.sight import LIKE_PODS, STREAMS, LateSight
from tests.support.trouble import random_rule
from vgpuctl.engine.reactor import Decision, Goal
from vgpuctl.model.conduct import Asleep
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.requests import DeletePod, Evict, Request
from vgpuctl.observe.fleet_builder import FleetBuilder
from vgpuctl.planning.laws import broken_by
from vgpuctl.sim.clock import Timer
from vgpuctl.sim.faults import KUBERNETES, Effect, How, Rule
from vgpuctl.sim.kube.api.request import Request as Wire
from vgpuctl.sim.kube.api.request import target_of
from vgpuctl.sim.kube.objects import labels_of, name_of, uid_of
from vgpuctl.sim.vcenter.wire.requests import Request as Called
from vgpuctl.sim.world import World

BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)
#: Who has no answer asks again, and may meet another pod of that name.
LOST_EVICTIONS = Rule(
    server=KUBERNETES, method="POST pods/eviction", effect=Effect(how=How.LOSE_REPLY), chance=0.5, times=6
)
NEVER: dict[str, float] = {}
SUSPEND = "SuspendVM_Task"
STARTS, STOPS = {"PowerOnVM_Task"}, {SUSPEND, "ShutdownGuest", "PowerOffVM_Task"}


@dataclass
class Adventure(Rehearsal):
    """A rehearsal whose engine sees everything late, among people who do as they like."""

    chance: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = tuple(name for group in self.world.inventory.groups for name in group.workers)
        self.tables = tuple(self.files.timetables.values())
        conducts = {worker.name: table.conduct for table in self.tables for worker in table.workers(self.fleet())}
        self.judge = Judge(self.world, conducts)
        self.people = Meddling(self.world, self.judge, names, self.entries.clear)
        self._unheard_until_s = 0.0
        self.dreamers: dict[str, str] = {}
        self.sizes = {each.name: each.replicas for each in self.world.inventory.workloads}
        self._eyes = FleetBuilder(self.files.catalogue, self.world.clock.utc)
        self._lags_s = NEVER
        self._timers: list[Timer] = []

    def picture(self) -> Fleet:
        self._late.look(self.world.clock.now_s)
        self.broken += overfull(self.fleet())
        return self._shown()

    def _shown(self) -> Fleet:
        """While vCenter cannot be heard its part of the picture stands still."""
        deaf = self.world.clock.now_s < self._unheard_until_s
        shown = self._eyes.build(self._late, self._late)
        return replace(shown, stale=("vCenter",)) if deaf else shown

    def run(self, goal: Goal, ends: Ends) -> Decision:
        """Who begins reads everything; only then the streams lag."""
        self._late = LateSight(self._seen, self._lags_s, self.world.clock.now_s)
        self.judge.run = self.runs + 1
        self.judge.lag_s = max(self._lags_s.values(), default=0.0)
        return super().run(goal, ends)

    def let_time_pass(self) -> None:
        clock = self.world.clock
        due = [when for when in (clock.next_due_s(), self._late.next_due_s()) if when is not None]
        clock.advance_to(max(clock.now_s, min(clock.now_s + LOOK_S, *due)))

    def law_broken_by(self, request: Request) -> str:
        """What could be known: it is true now, and was seen."""
        return broken_by(request, self.fleet()) and broken_by(request, self._shown())

    def at_kubernetes(self, request: Wire, answer: Callable[[], Response]) -> Response:
        asked, target = self.errand.request, target_of(request.path)
        self.judge.late_by_s = self.errand.hung_s or 0.0
        if request.method == "PATCH" and target.kind.plural == "nodes":
            return self.judge.patches(target.name, request, answer)
        if request.method == "PATCH":
            return self.judge.scales(target, answer)
        if request.method in ("POST", "DELETE") and isinstance(asked, Evict | DeletePod):
            return self.judge.evicts(asked.pod.namespace, asked.pod.name, asked.pod.uid, answer)
        return answer()

    def at_vcenter(self, call: Called) -> None:
        if call.method in STARTS | STOPS:
            vm = self.world.center.subject(call.this)
            self.judge.late_by_s = self.errand.hung_s or 0.0
            self.judge.powers(vm.name, by=self.errand.run)
            if call.method in STOPS:
                self.judge.stops(vm, suspended=call.method == SUSPEND)

    def meet_trouble(self) -> None:
        """Faults, delays and people for the time to come."""
        for _ in range(self.chance.choice([0, 1, 1, 2, 4])):
            self.world.calls.faults.add(random_rule(self.chance))
        if self.chance.random() < 0.25:
            self.world.calls.faults.add(replace(LOST_EVICTIONS, seed=self.chance.randrange(1000)))
        self.see_late()
        if self.chance.random() < 0.1:
            self._timers.append(self.world.clock.after(self.chance.uniform(0.0, 20.0), self._hear_nothing))
        for _ in range(self.chance.choice([0, 0, 1, 2, 4])):
            act = self.people.drawn(self.chance)
            when_s = self.chance.choice([0.0, self.chance.uniform(0.0, 8.0), self.chance.uniform(0.0, 45.0)])
            self._timers.append(self.world.clock.after(when_s, act))
        self.wait(self.chance.choice([0.0, 0.1]))

    def _hear_nothing(self) -> None:
        self._unheard_until_s = self.world.clock.now_s + self.chance.choice([2.0, 20.0])

    def see_late(self) -> None:
        slow = self.chance.choice([(0.0,), (0.0, 0.5, 3.0), (0.2, 1.0), (2.0, 4.0)])
        self._lags_s = {name: self.chance.choice(slow) for name in STREAMS if name not in LIKE_PODS}
        self._lags_s |= dict.fromkeys(LIKE_PODS, self._lags_s["pods"])

    def see_late_by(self, **lags_s: float) -> None:
        self._lags_s = lags_s

    def calm_down(self) -> None:
        """No more faults, and people have gone home."""
        for timer in self._timers:
            timer.cancel()
        for standing in self.world.calls.faults:
            self.world.calls.faults.clear(standing.id)
        self.world.estate.work.release_hung()
        self.wait(90)

    def journey(self) -> list[str]:
        """Which shifts people ask for, one after another: the next may come while a host is still on its way."""
        found = []
        for number in self.chance.choice([(1,), (1,), (1, 0), (1, 1, 0)]):
            found += [list(table.shifts)[number] for table in self.tables if self.chance.random() < 0.8]
        return found

    def remember_dreamers(self) -> None:
        """Those that run where workers are suspended."""
        suspending = {name for name, conduct in self.judge.conducts.items() if conduct.asleep is Asleep.SUSPEND}
        pods = self.world.kubernetes.store.all("pods")
        dreaming = (pod for pod in pods if labels_of(pod).get("app") == DREAMER)
        self.dreamers = {name_of(pod): uid_of(pod) for pod in dreaming if pod["spec"].get("nodeName") in suspending}


def adventure(seed: int) -> Adventure:
    """Lived to its end; `broken` and the judge's tell what was against the laws."""
    lived = begun(seed)
    chance = lived.chance
    for shift in lived.journey():
        lived.meet_trouble()
        die_after = chance.choice([None, None, chance.randrange(0, 25)])
        stop_after_s = chance.choice([None, None, None, chance.uniform(0.0, 60.0)])
        homes = Homes(lived, shift)
        ended = lived.switch(shift, chance.choice([60.0, 200.0, 400.0]), die_after, stop_after_s)
        lived.broken += homes.missed(ended)
        lived.wait(chance.choice([0.0, 1.0, 30.0]))
    lived.calm_down()
    lived.see_late()
    lived.broken += [*Ending(lived).judge(), *lived.judge.broken]
    return lived


def begun(seed: int) -> Adventure:
    chance = random.Random(seed)
    some = with_scale(drawn(chance), random.Random(f"scale {seed}"))
    some = with_unkind_guests(some, random.Random(f"guests {seed}"))
    lived = Adventure(World(some.inventory, some.durations, began=BEGAN), some.files, chance=chance)
    for path, body in some.pods:
        lived.kubectl("POST", path, body)
    lived.wait(60)
    lived.remember_dreamers()
    return lived

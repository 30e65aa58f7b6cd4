"""One integer, one adventure: estate, conduct, faults, late pictures, crashes and people all follow from it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from tests.support.judge import Judge
from tests.support.meddling import Meddling
from tests.support.rehearsal import LOOK_S, NIGHT_S, Rehearsal, at_work, files_of
from tests.support.sight import STREAMS, LateSight
from tests.support.trouble import random_rule
from vgpuctl.engine.reactor import Decision, Goal
from vgpuctl.files import Files
from vgpuctl.kube.client import Object
from vgpuctl.model.conduct import Asleep, Conduct, OnResumeFailed, OnStuck
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.record import ASLEEP
from vgpuctl.model.requests import DeletePod, Evict, PowerOffVm, Request, ShutDownGuest, SuspendVm
from vgpuctl.model.share import Share
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.picture import Painter
from vgpuctl.planning.laws import broken_by, overfull
from vgpuctl.sim.clock import Timer
from vgpuctl.sim.faults import KUBERNETES, Effect, How, Rule
from vgpuctl.sim.inventory import (
    Durations,
    Group,
    HostSpec,
    Inventory,
    VmSpec,
    Workload,
    usual_shifts,
    usual_workloads,
    v100,
)
from vgpuctl.sim.kube.request import Request as Wire
from vgpuctl.sim.kube.request import target_of
from vgpuctl.sim.vcenter.records import Vm
from vgpuctl.sim.world import World

BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)
MOST_WORKERS = 12
TRIES = 3
#: Who has no answer asks again, and may meet another pod of that name.
LOST_EVICTIONS = Rule(
    server=KUBERNETES, method="POST pods/eviction", effect=Effect(how=How.LOSE_REPLY), chance=0.5, times=6
)
NEVER: dict[str, float] = {}


@dataclass
class Adventure(Rehearsal):
    """A rehearsal whose engine sees everything late, among people who do as they like."""

    chance: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = tuple(name for group in self.world.inventory.groups for name in group.workers)
        self.judge = Judge(self.world, frozenset(names))
        self.people = Meddling(self.world, self.judge, names, self.departures.clear)
        self._eyes = Painter(self.files.catalogue, self.world.clock.utc)
        self._lags_s = NEVER
        self._asked: Request | None = None
        self._timers: list[Timer] = []

    def picture(self) -> Fleet:
        self._late.look(self.world.clock.now_s)
        self.broken += overfull(self.fleet())
        return self._shown()

    def _shown(self) -> Fleet:
        return self._eyes.paint(self._late, self._late)

    def _run(self, goal: Goal, until_s: float, die_after: int | None) -> Decision:
        """Who begins reads everything; only then the streams lag."""
        self._late = LateSight(self._seen, self._lags_s, self.world.clock.now_s)
        self.judge.run = self._run_number + 1
        self.judge.lag_s = max(self._lags_s.values(), default=0.0)
        return super()._run(goal, until_s, die_after)

    def _let_time_pass(self) -> None:
        clock = self.world.clock
        due = [when for when in (clock.next_due_s(), self._late.next_due_s()) if when is not None]
        clock.advance_to(max(clock.now_s, min(clock.now_s + LOOK_S, *due)))

    def _law_broken_by(self, request: Request) -> str:
        """What could be known: it is true now, and was seen."""
        return broken_by(request, self.fleet()) and broken_by(request, self._shown())

    def _request(self, request: object) -> object:  # type: ignore[override]
        self._asked = request  # type: ignore[assignment]
        return super()._request(request)

    def _arrives(self, request: Wire, answer: Callable[[], Object]) -> Object:
        asked, target = self._asked, target_of(request.path)
        if request.method == "PATCH":
            return self.judge.patches(target.name, request, answer)
        if request.method in ("POST", "DELETE") and isinstance(asked, Evict | DeletePod):
            return self.judge.evicts(asked.pod.namespace, asked.pod.name, asked.pod.uid, answer)
        return answer()

    def _reaches(self, vm: Vm, request: Request) -> None:
        self.judge.powers(vm.name, by=self._late_run or self._run_number)
        if isinstance(request, SuspendVm | ShutDownGuest | PowerOffVm):
            self.judge.stops(vm)

    def meet_trouble(self) -> None:
        """Faults, delays and people for the time to come."""
        for _ in range(self.chance.choice([0, 1, 1, 2, 4])):
            self.world.calls.faults.add(random_rule(self.chance))
        if self.chance.random() < 0.25:
            self.world.calls.faults.add(replace(LOST_EVICTIONS, seed=self.chance.randrange(1000)))
        self.see_late()
        for _ in range(self.chance.choice([0, 0, 1, 2, 4])):
            act = self.people.drawn(self.chance)
            when_s = self.chance.choice([0.0, self.chance.uniform(0.0, 8.0), self.chance.uniform(0.0, 45.0)])
            self._timers.append(self.world.clock.after(when_s, act))
        self.wait(self.chance.choice([0.0, 0.1]))

    def see_late(self) -> None:
        slow = self.chance.choice([(0.0,), (0.0, 0.5, 3.0), (0.2, 1.0), (2.0, 4.0)])
        self._lags_s = {name: self.chance.choice(slow) for name in STREAMS}

    def see_vcenter_late(self, seconds: float) -> None:
        self._lags_s = {"vcenter": seconds}

    def calm_down(self) -> None:
        """No more faults, and people have gone home."""
        for timer in self._timers:
            timer.cancel()
        for standing in self.world.calls.faults:
            self.world.calls.faults.clear(standing.id)
        self.world.estate.work.let_go()
        self.wait(90)

    def ends_well(self, shift: str) -> None:
        """Law 5, 6 and 3: the shift is there or somebody was told why not, and then nothing is left to do."""
        for _ in range(TRIES):
            ended = self.switch(shift)
            if not ended.finished or not self._out_of_place(shift):
                break
        told = self._told(shift, ended)
        if not ended.finished and not told:
            self.broken.append(f"law 5: {shift} never ends: {dict(ended.waits)}")
        left = {host: why for host, why in self._out_of_place(shift).items() if host not in told}
        self.broken += [f"law 5: {shift} is not on {host}: {why}; {_memory(ended)}" for host, why in left.items()]
        sent = len(self.sent)
        if not self._out_of_place(shift) and (not self.switch(shift).finished or len(self.sent) > sent):
            self.broken.append(f"law 6: a repeated run writes {self.sent[sent:]}")
        self.broken += [f"law 3: the cordon of {name} is gone" for name in sorted(self._lost_cordons())]

    def _told(self, shift: str, ended: Decision) -> set[str]:
        """The hosts of which a report says why they are not in this shift, for a reason that the world gives."""
        conduct, memory = self.files.timetable_of(shift, None).conduct, ended.memory
        told = {refusal.host for refusal in self.refusals if refusal.message}
        for host, why in {**memory.going_back, **memory.gave_up}.items():
            if "did not drain within" in why or (why and self._hindered):
                told.add(host)
        if not ended.finished and conduct.on_stuck is OnStuck.WAIT:
            told |= {self.fleet().host_of(step.split("/")[1]) for step, why in ended.waits.items() if why}
        return set(self.fleet().hosts) if told and conduct.all_or_nothing else told

    @property
    def _hindered(self) -> bool:
        """By what people have left behind."""
        return bool(self.judge.foreign or self.people.bare)

    def _lost_cordons(self) -> set[str]:
        return {name for name in self.judge.foreign if name not in self.cordoned()}

    def _out_of_place(self, shift: str) -> dict[str, str]:
        """The hosts where something is not as the shift wants it, and what."""
        wanted = self.files.timetable_of(shift, None).shifts[shift]
        return {w.host: why for w in self.fleet().workers.values() if (why := self._wrong(w, wanted.wakes(w)))}

    def _wrong(self, worker: Worker, awake: bool) -> str:
        node, foreign = worker.node, worker.name in self.judge.foreign
        if worker.on is not awake:
            return f"{worker.name} is {worker.power}"
        if node is None:
            return f"{worker.name} has no node" if awake else ""
        if awake and (node.record is not None or node.unschedulable is not foreign):
            return f"{worker.name} is awake, and {'cordoned' if node.unschedulable else 'marked'}"
        if not awake and not (node.unschedulable and node.record and node.record.state == ASLEEP):
            return f"{worker.name} sleeps, and does not say so"
        return ""


def _memory(ended: Decision) -> str:
    memory = ended.memory
    return f"back: {dict(memory.going_back)} gave up: {dict(memory.gave_up)} held: {dict(memory.held_back)}"


def adventure(seed: int) -> Adventure:
    """Lived to its end; `broken` and the judge's tell what was against the laws."""
    lived = begun(seed)
    chance = lived.chance
    for shift in chance.choice([("night",), ("night",), ("night", "day"), ("night", "night", "day")]):
        lived.meet_trouble()
        die_after = chance.choice([None, None, chance.randrange(0, 25)])
        lived.switch(shift, until_s=chance.choice([60.0, 200.0, 400.0]), die_after=die_after)
        lived.wait(chance.choice([0.0, 1.0, 30.0]))
    lived.calm_down()
    lived.see_late()
    lived.ends_well(chance.choice(["day", "night"]))
    lived.broken += lived.judge.broken
    return lived


def begun(seed: int) -> Adventure:
    chance = random.Random(seed)
    inventory = at_work(estate(chance))
    world = World(inventory, _durations(chance), began=BEGAN)
    lived = Adventure(world, _with_conduct(files_of(inventory), chance), chance=chance)
    lived.kubectl("POST", "/apis/apps/v1/namespaces/default/statefulsets", _keepers(chance.choice([0, 2, 6])))
    lived.wait(60)
    return lived


def estate(chance: random.Random) -> Inventory:
    """Up to three hosts with a card or two; for each card a few by day and one by night."""
    hosts, cards = chance.choice([(1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1)])
    each = chance.randrange(1, min(4, MOST_WORKERS // (hosts * cards) - 1) + 1)
    size = "8q" if each <= 2 else "4q"
    specs = tuple(HostSpec(f"esx-{n}", tuple(map(v100, range(cards)))) for n in range(1, hosts + 1))
    vms, by_day, by_night = [VmSpec("infra-1", "esx-1", powered_on=True)], [], []
    for number in range(hosts * cards):
        names = [f"worker-{(each + 1) * number + n}" for n in range(1, each + 2)]
        vms += [VmSpec(name, f"esx-{number // cards + 1}") for name in names]
        by_day += names[:each]
        by_night += names[each:]
    day = Group(f"v100-{size}", (f"grid_v100-{size}",), tuple(by_day))
    night = Group("v100-16q", ("grid_v100-16q",), tuple(by_night))
    return Inventory("gpu", specs, tuple(vms), (day, night), usual_shifts(day, night), _workloads(day, night, chance))


def _workloads(day: Group, night: Group, chance: random.Random) -> tuple[Workload, ...]:
    some = usual_workloads(day, night)
    web = Workload(name="web", replicas=chance.randrange(2, 6), budget={"maxUnavailable": chance.choice([1, 1, 2])})
    return (*some, web) if chance.random() < 0.4 else some


def _durations(chance: random.Random) -> Durations:
    return Durations(
        suspend_s=chance.choice([0.5, 2.0, 15.0]),
        power_on_s=chance.choice([0.5, 2.0, 8.0]),
        kubelet_s=chance.choice([0.5, 1.0, 5.0]),
        pod_end_s=chance.choice([0.5, 1.5, 6.0]),
    )


def _with_conduct(files: Files, chance: random.Random) -> Files:
    asleep = chance.choice([Asleep.SUSPEND, Asleep.SUSPEND, Asleep.OFF])
    conduct = Conduct(
        on_stuck=chance.choice([OnStuck.BACK, OnStuck.BACK, OnStuck.WAIT, OnStuck.FORCE]),
        on_resume_failed=chance.choice(list(OnResumeFailed)),
        asleep=asleep,
        power_off_after_s=chance.choice([None, 30.0]) if asleep is Asleep.OFF else None,
        all_or_nothing=chance.random() < 0.1,
    )
    drain = DrainOptions(timeout_s=chance.choice([60.0, 120.0]), force=chance.random() < 0.5)
    out = chance.choice([None, None, Share(5)])
    change = partial(replace, conduct=conduct, drain=drain, max_unavailable=out)
    return replace(files, timetables={name: change(table) for name, table in files.timetables.items()})


def _keepers(replicas: int) -> Object:
    """Pods whose names come again."""
    labels = {"app": "keeper"}
    container = {"name": "main", "image": "one", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"selector": {"matchLabels": labels}, "serviceName": "keeper", "replicas": replicas}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "keeper"},
        "spec": {**spec, "podManagementPolicy": "Parallel", "template": template},
    }


__all__ = ["NIGHT_S", "Adventure", "adventure"]

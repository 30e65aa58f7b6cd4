"""Nights from seeds, in virtual time: an estate that changes its shift again and again, and keeps the history of it.

Drawn by chance are
  the VMs' memory, and the datastore's throughput,
  each suspend and resume: memory ÷ throughput × a lognormal factor (sigma 0.15),
  each night's kubelets and GPU stacks: lognormal (sigma 0.2) around the estate's median,
  the pods: workloads that end within 1, 2 or 20 s (lognormal, sigma 0.15), or only when their grace is over, some under
  a budget; three times as many on one night in four; and on three nights in ten a batch with another grace each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

from tests.support.clients import Response
from tests.support.day import at_work, files_of
from tests.support.night_pods import (
    APPS,
    BATCH_GRACES_S,
    BUDGETS,
    Kind,
    budget,
    deployment,
    drawn_batch,
    drawn_kind,
)
from tests.support.rehearsal import Rehearsal
from tests.support.runs import Ends
from vgpuctl.engine.reactor import Decision, Goal
from vgpuctl.engine.recorder import Recorder
from vgpuctl.engine.runner import Progress
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import DONE, Entry
from vgpuctl.model.plan import Plan, Step
from vgpuctl.model.requests import Evict
from vgpuctl.model.step_id import StepId
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.operations import Preview, look_ahead, with_history
from vgpuctl.planning.wishes import switch_wish
from vgpuctl.sim.inventory import Durations, Group, HostSpec, Inventory, VmSpec, default_shifts, v100
from vgpuctl.sim.kube.api.request import Request as Wire
from vgpuctl.sim.vcenter.wire.requests import Request as Called
from vgpuctl.sim.world import World

BEGAN = datetime(2026, 1, 5, 12, tzinfo=UTC)
GIB = 1024
DAY, NIGHT = "v100-4q-4GB", "v100-16q-16GB"
SIGMA_TASK, SIGMA_NIGHT = 0.15, 0.2
BURST, BURSTS, BATCHES, THERE = 3, 0.25, 0.3, 0.75
#: Hosts, and the cards of each.
SIZES = ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1))
LONGEST_S = 7200.0
EVERY_S = 2.0


@dataclass
class Nights(Rehearsal):
    """`history`: the entries so far, as the product's recorder writes them. `store_mib_per_s`: the throughput."""

    chance: random.Random = field(default_factory=random.Random)
    kinds: tuple[Kind, ...] = ()
    store_mib_per_s: float = 500.0
    history: list[Entry] = field(default_factory=list)

    @cached_property
    def usual(self) -> Durations:
        """The estate's medians."""
        return replace(self.world.durations)

    @cached_property
    def memory_mib(self) -> dict[str, int]:
        return {vm.name: vm.memory_mib for vm in self.world.inventory.vms}

    def ahead(self, shift: str) -> Preview:
        """Return the dry run of a shift, with the history so far."""
        timetable, fleet = self.files.timetable_of(shift, None), self.fleet()
        wish = switch_wish(fleet, self.files.catalogue, timetable, shift, self.world.clock.utc())
        return with_history(look_ahead(fleet, wish), self.history)

    def daybreak(self) -> None:
        """Create the day's pods anew, spread over all nodes, and draw how quick this day's nodes are."""
        usual, durations = self.usual, self.world.durations
        durations.kubelet_s = usual.kubelet_s * self._spread(SIGMA_NIGHT)
        durations.gpu_stack_s = usual.gpu_stack_s * self._spread(SIGMA_NIGHT)
        burst = BURST if self.chance.random() < BURSTS else 1
        for kind in self.kinds:
            self._scale(kind, 0)
        self.wait(1)
        *ordinary, batch = self.kinds
        for kind in ordinary:
            if self.chance.random() < THERE:
                self._scale(kind, max(1, kind.replicas * burst + self.chance.choice([-1, 0, 0, 1])))
        if self.chance.random() < BATCHES:
            self._submit(replace(batch, grace_s=self.chance.choice(BATCH_GRACES_S)))
        self.wait(60)

    def run(self, goal: Goal, ends: Ends) -> Decision:
        self._keeper = _Keeper(self.history)
        self._keeper.recorder.begin(goal.wish.name, goal.wish.timetable, self.world.clock.utc().isoformat())
        decision = super().run(goal, ends)
        self._keeper.recorder.close()
        return decision

    def looked(self, decision: Decision, fleet: Fleet, took_s: float) -> None:
        self._keeper.looked(decision, fleet, took_s)

    def let_time_pass(self) -> None:
        """Look every two seconds instead of at each heartbeat of a kubelet, which takes five times as long."""
        self.wait(EVERY_S)

    def at_vcenter(self, call: Called) -> None:
        if call.method in {"SuspendVM_Task", "PowerOnVM_Task"}:
            memory_mib = self.memory_mib[self.world.center.subject(call.this).name]
            takes_s = memory_mib / self.store_mib_per_s * self._spread(SIGMA_TASK)
            self.world.durations.suspend_s = self.world.durations.power_on_s = takes_s

    def at_kubernetes(self, request: Wire, answer: Callable[[], Response]) -> Response:
        if not isinstance(self.errand.request, Evict) or request.method != "POST":
            return answer()
        pod = self.errand.request.pod
        end_s = next((kind.end_s for kind in self.kinds if pod.name.startswith(kind.name)), 1.0)
        self.world.durations.pod_end_s = end_s * self._spread(SIGMA_TASK)
        reply = answer()
        # The pod's kubelet hears of it in this very moment, with this duration.
        self.wait(0)
        return reply

    def _submit(self, batch: Kind) -> None:
        template = deployment(batch)["spec"]["template"]
        self.kubectl("PATCH", f"{APPS}/{batch.name}", {"spec": {"template": template}})
        self._scale(batch, self.chance.randrange(1, batch.replicas + 1))

    def _scale(self, kind: Kind, replicas: int) -> None:
        self.world.durations.pod_end_s = 0.01
        self.kubectl("PATCH", f"{APPS}/{kind.name}", {"spec": {"replicas": replicas}})

    def _spread(self, sigma: float) -> float:
        return self.chance.lognormvariate(0.0, sigma)


class _Keeper:
    """The product's recorder over one run, and the journal that it writes to."""

    def __init__(self, history: list[Entry]) -> None:
        self._history, self.recorder = history, Recorder(self, self)
        self._first = Plan()
        self._due: dict[StepId, Step] = {}
        self._done: dict[StepId, float] = {}

    def looked(self, decision: Decision, fleet: Fleet, took_s: float) -> None:
        self._first = self._first or decision.plan
        for id in self._due.keys() - decision.plan.ids:
            step = self._due.pop(id)
            if fleet.knows(step.subject) and step.done_in(fleet):
                self._done[id] = took_s
        self._due.update((step.id, step) for step in decision.plan if step.id in decision.state.due_since)
        done = dict(self._done)
        self.recorder.progress(Progress(first=self._first, decision=decision, fleet=fleet, done=done, elapsed_s=took_s))

    def progress(self, progress: Progress) -> None: ...

    def say(self, text: str) -> None:
        raise AssertionError(text)

    def keep(self, entry: Entry) -> None: ...

    def close(self, entry: Entry) -> str:
        self._history.append(replace(entry, number=len(self._history) + 1, outcome=DONE))
        return ""


def estate(seed: int, sizes: Sequence[tuple[int, int]] = SIZES) -> Nights:
    """Return an estate of one of these sizes by day. Its pods are not created yet."""
    chance = random.Random(f"nights {seed}")
    inventory = at_work(_inventory(chance, *chance.choice(sizes)))
    durations = Durations(kubelet_s=chance.choice([1.0, 4.0, 15.0]), gpu_stack_s=chance.choice([2.0, 20.0, 60.0]))
    workers = len(inventory.workers_of(DAY))
    kinds = (*(drawn_kind(chance, f"kind{n}", workers) for n in range(chance.choice([1, 2, 3]))), drawn_batch(chance))
    nights = Nights(
        World(inventory, durations, began=BEGAN),
        files_of(inventory),
        chance=chance,
        kinds=kinds,
        store_mib_per_s=chance.choice([400.0, 1000.0, 2000.0]),
    )
    nights.drain(DrainOptions(timeout_s=LONGEST_S))
    for kind in kinds:
        nights.kubectl("POST", APPS, deployment(kind))
        if kind.most_out is not None:
            nights.kubectl("POST", BUDGETS, budget(kind.name, kind.name, kind.most_out))
    return nights


def _inventory(chance: random.Random, hosts: int, cards: int) -> Inventory:
    """On each card up to three workers by day, and one by night."""
    each, vms = chance.randrange(1, 4), [VmSpec("infra-1", "esx-1", powered_on=True)]
    for number in range(hosts * cards):
        sizes = [*chance.choices([16, 32, 32, 64], k=each), chance.choice([64, 128, 256])]
        vms += [
            VmSpec(f"worker-{4 * number + n}", f"esx-{number // cards + 1}", memory_mib=size * GIB)
            for n, size in enumerate(sizes, start=1)
        ]
    workers = [vm.name for vm in vms[1:]]
    by_night = workers[each :: each + 1]
    day = Group(DAY, ("grid_v100-4q",), tuple(name for name in workers if name not in by_night))
    night = Group(NIGHT, ("grid_v100-16q",), tuple(by_night))
    specs = tuple(HostSpec(f"esx-{n}", tuple(map(v100, range(cards)))) for n in range(1, hosts + 1))
    return Inventory("gpu", specs, tuple(vms), (day, night), default_shifts(day, night))

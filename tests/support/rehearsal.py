"""A whole switch, provision or labelling in one process and in virtual time: the product's reactor and actions, and
the simulated world.

No HTTP, no threads, no sleeping. Faults are the same rules that `vgpuctl sim fault` adds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from tests.support.clients import Kubernetes, Response, Vcenter, kubectl
from tests.support.day import files_of
from tests.support.runs import NIGHT_S, Ends, Errand, Run
from tests.support.sight import Sight
from vgpuctl.basics.names import Names
from vgpuctl.engine.ports import Answer
from vgpuctl.engine.reactor import Decision, Goal
from vgpuctl.engine.run_state import RunState
from vgpuctl.files import Files
from vgpuctl.kube.client import Object
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.ledger import Entry, EntryKey, Ledger
from vgpuctl.model.plan import Remark
from vgpuctl.model.profiles import Catalogue, Profile, WorkerRule
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.requests import Request
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.observe.fleet_builder import FleetBuilder
from vgpuctl.observe.wiring import send_request
from vgpuctl.operations import look_ahead
from vgpuctl.planning.departures import to_record
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.wishes import Provisioning, former_wish, label_wish, provision_wish, switch_wish
from vgpuctl.sim.faults import Effect
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.kube.api.request import Request as Asked
from vgpuctl.sim.vcenter.wire.requests import Request as Called
from vgpuctl.sim.world import World

LOOK_S = 5.0


@dataclass
class Rehearsal:
    """`switch` and `provision` run to their end; `broken` lists each law that a write broke.

    `sent`: the key of each write. `refusals`, `remarks`: those of the last switch. `watch` is shown the fleet at every
    look. `drain_first`: of the next switch. `runs`: how many there were. `errand`: what is on its way to a server.
    """

    world: World
    files: Files
    broken: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    entries: dict[EntryKey, Entry] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    remarks: tuple[Remark, ...] = ()
    watch: Callable[[Fleet], None] = lambda _: None
    drain_first: frozenset[str] = frozenset()
    runs: int = 0
    errand: Errand = field(init=False)

    @classmethod
    def of(cls, inventory: Inventory, durations: Durations) -> Self:
        return cls(World(inventory, durations), files_of(inventory))

    def __post_init__(self) -> None:
        self._seen = Sight(self.world)
        self._builder = FleetBuilder(self.files.catalogue, self.world.clock.utc)
        self._kubernetes = Kubernetes(self.world, self._counted, self.at_kubernetes)
        self._vcenter = Vcenter(self.world, self._counted, self.at_vcenter)

    def switch(
        self, shift: str, until_s: float = NIGHT_S, die_after: int | None = None, stop_after_s: float | None = None
    ) -> Decision:
        """As `vgpuctl switch --yes`. Hosts that are refused are left."""
        timetable = self.files.timetable_of(shift, None)
        fleet = self.fleet()
        wish = switch_wish(fleet, self.files.catalogue, timetable, shift, self.world.clock.utc())
        ahead = look_ahead(fleet, replace(wish, drain_first=self.drain_first))
        self.refusals, self.remarks, wish = ahead.refusals, ahead.remarks, ahead.wish
        if ahead.refusals and not ahead.plan:
            return Decision(state=RunState(), plan=ahead.plan, waits={}, finished=True)
        self.entries |= to_record(fleet, wish, ahead.plan, "then")
        decision = self.run(Goal(wish=wish, former=former_wish(wish)), Ends(until_s, die_after, stop_after_s))
        if decision.finished:
            for host in wish.departures.keys() - decision.state.gave_up.keys():
                self.entries.pop(wish.departures[host].key, None)
        return decision

    def provision(self, how: Provisioning, until_s: float = NIGHT_S, die_after: int | None = None) -> Decision:
        """As `vgpuctl provision --yes`, with the profiles that the files want now; hosts that are refused are left."""
        fleet = self.fleet()
        wish = look_ahead(fleet, provision_wish(fleet, self.files.catalogue, how)).wish
        return self.run(Goal(wish=wish, former=former_wish(wish)), Ends(until_s, die_after))

    def label(self, until_s: float = NIGHT_S) -> Decision:
        """As `vgpuctl label-nodes`."""
        return self.run(Goal(wish=label_wish(self.fleet(), self.files.catalogue)), Ends(until_s))

    def refused(self, how: Provisioning) -> tuple[Refusal, ...]:
        fleet = self.fleet()
        return look_ahead(fleet, provision_wish(fleet, self.files.catalogue, how)).refusals

    def want(self, profiles: Mapping[str, tuple[str, ...]], wanted: Mapping[str, str]) -> None:
        """Write other profiles into the files, and who shall carry which."""
        choices = tuple(WorkerRule(profile=profile, names=Names((name,))) for name, profile in wanted.items())
        known = {name: Profile(name, vgpus) for name, vgpus in profiles.items()}
        self.files = replace(self.files, catalogue=Catalogue(known, choices))
        self._builder = FleetBuilder(self.files.catalogue, self.world.clock.utc)

    def drain(self, options: DrainOptions) -> None:
        """Write these options into the timetables."""
        timetables = {name: replace(each, drain=options) for name, each in self.files.timetables.items()}
        self.files = replace(self.files, timetables=timetables)

    def kubectl(self, method: str, path: str, body: Object | None = None) -> Object:
        """What a person does meanwhile, with no fault in the way."""
        return kubectl(self.world.api, method, path, body)

    def picture(self) -> Fleet:
        """What the engine sees."""
        return self.fleet()

    def fleet(self) -> Fleet:
        """What is true."""
        return self._builder.build(self._seen, self._seen).with_ledger(Ledger.of(self.entries))

    def awake(self) -> set[str]:
        return {name for name, worker in self.fleet().workers.items() if worker.on}

    def cordoned(self) -> set[str]:
        return {name for name, worker in self.fleet().workers.items() if worker.node and worker.node.unschedulable}

    def run(self, goal: Goal, ends: Ends) -> Decision:
        self.runs += 1
        return Run(self, goal, self.runs).to_its_end(ends)

    def law_broken_by(self, request: Request) -> str:
        return broken_by(request, self.fleet())

    def carry(self, errand: Errand) -> Answer:
        """Put a request to its server with the product's own actions."""
        self.errand = errand
        return send_request(self._kubernetes, self._vcenter, errand.request)

    def at_kubernetes(self, _: Asked, answer: Callable[[], Response]) -> Response:
        """A request reaches Kubernetes."""
        return answer()

    def at_vcenter(self, call: Called) -> None:
        """A call reaches vCenter."""

    def looked(self, decision: Decision, fleet: Fleet, took_s: float) -> None:
        """The engine has looked, this long after its beginning."""

    def wait(self, seconds: float) -> None:
        self.world.wait(seconds)

    def let_time_pass(self) -> None:
        """Until something falls due, and no longer than the engine waits before it looks again."""
        clock = self.world.clock
        due = clock.next_due_s()
        clock.advance_to(min(clock.now_s + LOOK_S, max(clock.now_s, due) if due is not None else clock.now_s + LOOK_S))

    def _counted(self, server: str, method: str, *names: str) -> Effect | None:
        """What hung was counted, and met its fault, when it was sent."""
        return self.world.calls.count(server, method, *names) if self.errand.hung_s is None else None

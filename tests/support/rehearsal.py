"""A whole switch or provision in one process and in virtual time: the product's reactor, the simulated world.

No HTTP, no threads, no sleeping. Faults are the same rules that `vgpuctl sim fault` adds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from tests.support.clients import Kubernetes, Later, with_effect
from tests.support.sight import Sight
from vgpuctl.engine.look import Moment, Send
from vgpuctl.engine.memory import Memory
from vgpuctl.engine.ports import Answer
from vgpuctl.engine.reactor import Decision, Goal, decide
from vgpuctl.files import Files, read_files
from vgpuctl.kube import actions
from vgpuctl.kube.client import Object
from vgpuctl.model import plan
from vgpuctl.model.departure import Departure, Key
from vgpuctl.model.errors import VgpuctlError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.names import Names
from vgpuctl.model.profiles import Catalogue, Choice, Profile
from vgpuctl.model.requests import (
    AttachVgpus,
    DeletePod,
    Evict,
    PatchMachine,
    PatchNode,
    PowerOffVm,
    PowerOnVm,
    ScaleWorkload,
    ShutDownGuest,
    SuspendVm,
)
from vgpuctl.model.requests import Request as Asked
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.model.wish import Wish
from vgpuctl.operations import look_ahead
from vgpuctl.picture import Painter
from vgpuctl.planning.departures import to_record
from vgpuctl.planning.laws import broken_by, overfull
from vgpuctl.planning.wishes import Provisioning, former_wish, provision_wish, switch_wish
from vgpuctl.sim.faults import VCENTER, Effect, How
from vgpuctl.sim.files import profiles_text, timetable_text
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.kube.request import Request
from vgpuctl.sim.vcenter import (
    app,  # noqa: F401  (it registers the methods)
    faults,
)
from vgpuctl.sim.vcenter.dispatch import HANDLERS
from vgpuctl.sim.vcenter.records import Changes, Vm
from vgpuctl.sim.vcenter.refusals import Refusal
from vgpuctl.sim.vcenter.tasks import HANGS
from vgpuctl.sim.world import World
from vgpuctl.vsphere.faults import translated

LOOK_S = 5.0
NIGHT_S = 1800.0
assert HANDLERS, "the methods must be known for their names to be checked"


@dataclass(frozen=True, slots=True)
class Ends:
    """How long a run may take. With `die_after` its process ends after so many writes, whatever was on its way; with
    `stop_after_s` somebody presses Ctrl-C."""

    until_s: float = NIGHT_S
    die_after: int | None = None
    stop_after_s: float | None = None


@dataclass
class Rehearsal:
    """`switch` and `provision` run to their end; `broken` lists each law that a write broke.

    `sent`: the key of each write. `refusals`: those of the last switch. `watch` is shown the fleet at every look.
    """

    world: World
    files: Files
    broken: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    departures: dict[Key, Departure | None] = field(default_factory=dict)
    refusals: tuple[plan.Refusal, ...] = ()
    watch: Callable[[Fleet], None] = lambda _: None

    @classmethod
    def of(cls, inventory: Inventory, durations: Durations) -> Self:
        return cls(World(inventory, durations), files_of(inventory))

    def __post_init__(self) -> None:
        self._seen = Sight(self.world)
        self._painter = Painter(self.files.catalogue, self.world.clock.utc)
        self._run_number, self._late_run = 0, 0
        self._client = Kubernetes(self.world, self._meet, self._arrives)

    def switch(
        self, shift: str, until_s: float = NIGHT_S, die_after: int | None = None, stop_after_s: float | None = None
    ) -> Decision:
        """As `vgpuctl switch --yes`. Hosts that are refused are left."""
        timetable = self.files.timetable_of(shift, None)
        fleet = self.fleet()
        ahead = look_ahead(fleet, switch_wish(fleet, self.files.catalogue, timetable, shift, self.world.clock.utc()))
        self.refusals, wish = ahead.refusals, ahead.wish
        if ahead.refusals and not ahead.plan:
            return Decision(memory=Memory(), plan=ahead.plan, waits={}, finished=True)
        self.departures |= to_record(fleet, wish, ahead.plan, "then")
        decision = self._run(Goal(wish=wish, former=former_wish(wish)), Ends(until_s, die_after, stop_after_s))
        if decision.finished:
            for host in wish.departures.keys() - decision.memory.gave_up.keys():
                self.departures.pop(wish.departures[host].key, None)
        return decision

    def provision(self, how: Provisioning, until_s: float = NIGHT_S, die_after: int | None = None) -> Decision:
        """As `vgpuctl provision --yes`, with the profiles that the files want now; hosts that are refused are left."""
        fleet = self.fleet()
        wish = look_ahead(fleet, provision_wish(fleet, self.files.catalogue, how)).wish
        return self._run(Goal(wish=wish, former=former_wish(wish)), Ends(until_s, die_after))

    def refused(self, how: Provisioning) -> tuple[plan.Refusal, ...]:
        fleet = self.fleet()
        return look_ahead(fleet, provision_wish(fleet, self.files.catalogue, how)).refusals

    def want(self, profiles: Mapping[str, tuple[str, ...]], wanted: Mapping[str, str]) -> None:
        """Write other profiles into the files, and who shall carry which."""
        choices = tuple(Choice(profile=profile, names=Names((name,))) for name, profile in wanted.items())
        known = {name: Profile(name, vgpus) for name, vgpus in profiles.items()}
        self.files = replace(self.files, catalogue=Catalogue(known, choices))
        self._painter = Painter(self.files.catalogue, self.world.clock.utc)

    def kubectl(self, method: str, path: str, body: Object | None = None) -> Object:
        """What a person does meanwhile, with no fault in the way."""
        return Kubernetes(self.world, lambda *_: None).call(method, path, body or {})

    def drain(self, options: DrainOptions) -> None:
        """Write these options into the timetables."""
        timetables = {name: replace(each, drain=options) for name, each in self.files.timetables.items()}
        self.files = replace(self.files, timetables=timetables)

    def picture(self) -> Fleet:
        """What the engine sees."""
        return self.fleet()

    def fleet(self) -> Fleet:
        """What is true."""
        there = {key: left for key, left in self.departures.items() if left is not None}
        return replace(self._painter.paint(self._seen, self._seen), departures=there)

    def wait(self, seconds: float) -> None:
        self.world.clock.advance_to(self.world.clock.now_s + seconds)

    def awake(self) -> set[str]:
        return {name for name, worker in self.fleet().workers.items() if worker.on}

    def cordoned(self) -> set[str]:
        return {name for name, worker in self.fleet().workers.items() if worker.node and worker.node.unschedulable}

    def _run(self, goal: Goal, ends: Ends) -> Decision:
        self._memory, began_s, writes = Memory(), self.world.clock.now_s, 0
        self._run_number += 1
        while True:
            now_s = self.world.clock.now_s
            if ends.stop_after_s is not None and now_s - began_s >= ends.stop_after_s:
                self._memory = replace(self._memory, stopping=True)
            fleet = self.picture()
            self.watch(fleet)
            self.broken += overfull(fleet)
            decision = decide(goal, fleet, self._memory, Moment(now_s=now_s, utc=self.world.clock.utc().isoformat()))
            self._memory = decision.memory
            if decision.finished or now_s - began_s > ends.until_s:
                return decision
            for send in decision.sends:
                if ends.die_after is not None and writes >= ends.die_after:
                    return decision
                writes += 1
                self._send(send)
            self._let_time_pass()

    def _let_time_pass(self) -> None:
        clock = self.world.clock
        due = clock.next_due_s()
        clock.advance_to(min(clock.now_s + LOOK_S, max(clock.now_s, due) if due is not None else clock.now_s + LOOK_S))

    def _send(self, send: Send) -> None:
        self.sent.append(send.key)
        if law := self._law_broken_by(send.request):
            self.broken.append(f"{send.key}: {law}")
        try:
            self._carried_out(send)
        except Later as later:
            self.world.clock.after(later.seconds, partial(self._send_late, send, self._run_number))
        except VgpuctlError as error:
            self._refuse(send.key, error)

    def _law_broken_by(self, request: Asked) -> str:
        return broken_by(request, self.fleet())

    def _arrives(self, _: Request, answer: Callable[[], Object]) -> Object:
        """A request reaches Kubernetes."""
        return answer()

    def _reaches(self, vm: Vm, request: Asked) -> None:
        """A request reaches vCenter."""

    def _carried_out(self, send: Send) -> None:
        answer = self._request(send.request)
        self._remember(send.key, task=answer.task, error="")

    def _send_late(self, send: Send, run: int) -> None:
        """What hung is carried out now, whether or not that process is still there to hear of it."""
        self._late_run = run
        try:
            self._carried_out(send)
        except VgpuctlError as error:
            self._refuse(send.key, error)
        finally:
            self._late_run = 0

    def _meet(self, server: str, method: str, *names: str) -> Effect | None:
        return None if self._late_run else self.world.calls.count(server, method, *names)

    def _refuse(self, key: str, error: VgpuctlError) -> None:
        self._remember(key, error=error.message, passing=error.passing, after_s=error.after_s, patience=error.patience)

    def _remember(self, key: str, **outcome: object) -> None:
        if self._late_run in (0, self._run_number):
            self._memory = self._memory.answered(key, self.world.clock.now_s, **outcome)

    def _request(self, request: object) -> Answer:
        match request:
            case PatchNode():
                return actions.patch_node(self._client, request)  # type: ignore[arg-type]
            case ScaleWorkload():
                return actions.scale(self._client, request)  # type: ignore[arg-type]
            case PatchMachine():
                return actions.patch_machine(self._client, request)  # type: ignore[arg-type]
            case Evict():
                return actions.evict(self._client, request)  # type: ignore[arg-type]
            case DeletePod():
                return actions.delete(self._client, request)  # type: ignore[arg-type]
            case SuspendVm(first=first) | ShutDownGuest(first=first) | PowerOffVm(first=first) if first is not None:
                actions.confirm(self._client, first)  # type: ignore[arg-type]
        return self._vcenter(request)

    def _vcenter(self, request: Any) -> Answer:
        estate = self.world.estate
        vm = next(vm for vm in estate.vms.values() if vm.moid == request.vm)
        calls: dict[type, tuple[str, Callable[[], Any]]] = {
            SuspendVm: ("SuspendVM_Task", lambda: estate.suspend(vm)),
            PowerOnVm: ("PowerOnVM_Task", lambda: estate.power_on(vm)),
            ShutDownGuest: ("ShutdownGuest", lambda: self._shut_down(vm, request)),
            PowerOffVm: ("PowerOffVM_Task", lambda: estate.power_off(vm)),
            AttachVgpus: ("ReconfigVM_Task", lambda: estate.reconfigure(vm, _changes(vm, request.vgpus))),
        }
        method, call = calls[type(request)]
        effect = self._meet(VCENTER, method, vm.moid, vm.name)

        def do() -> Answer:
            self._reaches(vm, request)
            with translated("sim"):
                try:
                    task = call()
                except Refusal as refused:
                    raise faults.fault_of(refused) from None
            # A guest's shutdown is no task, so none can fail or hang.
            if task and effect and effect.how is How.TASK_FAILS:
                estate.work.doom(task.moid, faults.refusal_by_name(effect.what))
            if task and effect and effect.how is How.TASK_HANGS:
                estate.work.doom(task.moid, HANGS)
            return Answer(task=task.moid if task else None)

        if effect and effect.how is How.FAIL:
            with translated("sim"):
                raise faults.by_name(effect.what)
        return with_effect(effect, do)

    def _shut_down(self, vm: Vm, request: ShutDownGuest) -> Any:
        """As the product's action does where no tools answer; that power-off is a call of its own, without faults."""
        try:
            self.world.estate.shut_down_guest(vm)
        except Refusal as refused:
            if refused.kind != "ToolsUnavailable" or not request.or_power_off:
                raise
            return self.world.estate.power_off(vm)
        return None


def _changes(vm: Vm, vgpus: tuple[str, ...]) -> Changes:
    removed = tuple((n, key) for n, key in enumerate(vm.vgpus))
    return Changes(removed=removed, added=tuple(enumerate(vgpus)), memory_locked=True)


def files_of(inventory: Inventory) -> Files:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "schedules").mkdir()
        (folder / "profiles.yaml").write_text(profiles_text(inventory))
        (folder / "schedules" / "day-night.yaml").write_text(timetable_text(inventory))
        return read_files(folder / "profiles.yaml", folder / "schedules")


def at_work(inventory: Inventory) -> Inventory:
    """The same estate on an ordinary day: provisioned, the first shift awake for long, pods on every node."""
    wanted = {worker: group.vgpus for group in inventory.groups for worker in group.workers}
    first = set(inventory.first_awake)
    vms = tuple(
        replace(vm, vgpus=wanted[vm.name], memory_locked=True, powered_on=vm.name in first) if vm.name in wanted else vm
        for vm in inventory.vms
    )
    return replace(inventory, vms=vms)


__all__ = ["Rehearsal", "Wish", "at_work"]

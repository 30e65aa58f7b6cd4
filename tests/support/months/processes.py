"""The processes of a month: instances of the daemon, and people's commands. Each sees both servers in its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.support.clients import Later
from tests.support.months.rules import Rules
from tests.support.months.running import Crew, VirtualRunner
from tests.support.months.servers import Party, PartyLease, Store
from tests.support.months.stage import Actor, KilledError, VirtualLock
from tests.support.runs import Errand
from tests.support.sight import LateSight
from vgpuctl.daemon.hooks import Hooks
from vgpuctl.daemon.schedule_loop import ScheduleLoop
from vgpuctl.engine.ports import Answer, Lease, LedgerStore, World
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.run_state import RunState
from vgpuctl.engine.runner import Listener
from vgpuctl.engine.steering import Steering
from vgpuctl.files import Files
from vgpuctl.model.errors import PassingError, VgpuctlError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import Entry
from vgpuctl.model.notice import Notice
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.requests import (
    AttachVgpus,
    PowerOffVm,
    PowerOnVm,
    Request,
    ShutDownGuest,
    SuspendVm,
)
from vgpuctl.observe.fleet_builder import FleetBuilder
from vgpuctl.operations import Operation
from vgpuctl.planning.ordering import order_of_switch
from vgpuctl.planning.wishes import former_wish, switch_wish

if TYPE_CHECKING:
    from tests.support.months.month import Month

ROUND_S = 60.0
FILES_S = 2.0
AT_VCENTER = (AttachVgpus, PowerOffVm, PowerOnVm, ShutDownGuest, SuspendVm)


class Silent:
    """A listener of one process: `told` keeps what it says."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self.say = told

    def progress(self, _progress: object) -> None: ...


class Connection:
    """Both servers as one process sees them: late, and not at all while they are away."""

    def __init__(self, month: Month, party: Party, crew: Crew) -> None:
        self.month, self.party, self.crew = month, party, crew
        self._builder = FleetBuilder(month.files.catalogue, month.world.clock.utc)
        self._store = Store(month.ledger, party)
        self.senders: list[Sender] = []
        self._read()

    def _read(self) -> None:
        self._late = LateSight(self.month.sight, self.month.lags_s, self.month.world.clock.now_s)
        self._last = self._builder.build(self._late, self._late)

    def observe(self, catalogue: Catalogue, *, scales: bool) -> None:
        self._builder.use(catalogue)

    def fleet(self) -> Fleet:
        away = self._away()
        if not away:
            self._late.look(self.month.world.clock.now_s)
            self._last = self._builder.build(self._late, self._late)
            self._last = self._last.with_ledger(self.month.ledger.shown(self.month.lag_s))
        self.month.referee.looks()
        return replace(self._last, stale=away) if away else self._last

    def _away(self) -> tuple[str, ...]:
        kubernetes = () if self.party.reaches else ("Kubernetes",)
        return (*self.month.vcenter_away, *kubernetes)

    def refresh(self) -> None:
        if away := self._away():
            raise PassingError(f"{away[0]} cannot be heard.")
        self._read()

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def world(self) -> World:
        sender = Sender(self)
        self.senders = [*self.senders[-10:], sender]
        return World(
            observer=self,
            sender=sender,
            lease=self.acting_lease(gives_way=False),
            clock=self,
            ledger=self._store,
            journal=self,
        )

    def acting_lease(self, *, gives_way: bool) -> Lease:
        return PartyLease(self.month.leases, self.party)

    @property
    def ledger(self) -> LedgerStore:
        return self._store

    def history(self) -> list[Entry]:
        return []

    def announce(self, found: Sequence[Notice]) -> None: ...
    def keep(self, entry: Entry) -> None: ...
    def close(self, entry: Entry) -> str:
        return ""

    def monotonic(self) -> float:
        return self.month.world.clock.now_s

    def utc(self) -> str:
        return self.month.world.clock.utc().isoformat()


class Sender:
    """Sends the requests of one switch. `taken_s`: when it took each host up. `rules`: the files it began with."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.party, self._month = connection, connection.party, connection.month
        self.runner: WatchedRunner | None = None
        self.rules: dict[str, Rules] = dict(self._month.rules_of(connection))
        self.timetable = ""

    @property
    def seen(self) -> Fleet:
        """The picture by which its last requests were decided."""
        assert self.runner is not None
        return self.runner.seen

    def check(self, requests: Iterable[Request]) -> None: ...
    def announce(self, notices: Sequence[Notice]) -> None: ...

    def send(self, request: Request) -> Answer:
        """Carry a request to its server. What hangs arrives later, also after the end of its process."""
        if not self.party.alive:
            raise KilledError
        if not self.party.reaches and not isinstance(request, AT_VCENTER):
            raise PassingError("Kubernetes cannot be heard.")
        self._month.sends(self, request)
        try:
            return self._carry(request, None)
        except Later as later:
            self._month.world.clock.after(later.seconds, partial(self._arrives, request, later.seconds))
            self._month.stage.rest(later.seconds + 0.1)
            raise PassingError("The answer did not come in time.") from None
        finally:
            self._month.after_write(self.party)

    def _carry(self, request: Request, hung_s: float | None) -> Answer:
        answer: Answer = self._month.carry(Errand(request, self.party.number, hung_s))
        return answer

    def _arrives(self, request: Request, hung_s: float) -> None:
        try:
            self._carry(request, hung_s)
        except VgpuctlError:
            return


class WatchedRunner(VirtualRunner):
    """It remembers when it took each host up, for the referee."""

    def __init__(self, crew: Crew, world: World, goal: Goal, listener: Listener, steering: Steering) -> None:
        super().__init__(crew, world, goal, listener, steering)
        sender: Any = world.sender
        self.taken_s: dict[str, float] = {}
        self.seen = world.observer.fleet()
        sender.runner, sender.timetable = self, goal.wish.timetable
        self._take(self._hosts(goal))

    def state(self) -> RunState:
        return self._state

    def _follow(self, decision: Any, fleet: Fleet, now_s: float) -> None:
        self.seen = fleet
        super()._follow(decision, fleet, now_s)

    def _hosts(self, goal: Goal) -> set[str]:
        fleet = self._world.observer.fleet()
        return {fleet.host_of(name) for name in goal.wish.workers}

    def _take(self, hosts: Iterable[str]) -> None:
        self.taken_s |= dict.fromkeys(hosts, self._world.clock.monotonic())

    def _admitted(self, turn: Any, fleet: Fleet, state: RunState) -> RunState:
        self._take(turn.hosts)
        return super()._admitted(turn, fleet, state)


class Process:
    """A process with its crew. `after`: after so many writes it dies."""

    def __init__(self, month: Month, name: str, *, gives_way: bool) -> None:
        self.month = month
        self.crew = Crew(month.stage)
        self.party = Party(number=month.next_number(), name=name, gives_way=gives_way)
        self.party.silent_s = month.kubernetes_away_since_s
        self.dies_after: int | None = None
        self.connection = Connection(month, self.party, self.crew)
        self.make_runner = partial(WatchedRunner, self.crew)

    def die(self, but: Actor | None = None) -> None:
        self.party.alive = False
        self.party.silent_s = self.month.world.clock.now_s if self.party.reaches else self.party.silent_s
        self.crew.kill(but)


class Instance(Process):
    """An instance of the daemon: the product's loop, rung once a minute, when something is due, and when told."""

    def __init__(self, month: Month, name: str) -> None:
        super().__init__(month, name, gives_way=True)
        self._ending = False
        hooks = Hooks(
            now=month.world.clock.utc,
            leading=lambda: month.leads(self),
            start=self.crew.submit,
            look_again=self.ring,
            make_operation=partial(Operation, make_runner=self.make_runner),
        )
        watched = month.watched_files(self)
        self.loop = ScheduleLoop(watched.current, self.connection, lambda: Silent(self.says), hooks)
        lease: Any = self.loop._lease
        lease._lock = VirtualLock(month.stage)
        self._watched = watched
        self._life = month.stage.begin(self._live)
        self.crew.actors.append(self._life)
        month.ledger.rings.append(self.ring)

    def says(self, text: str) -> None:
        self.month.log(f"{self.party.name}: {text}")

    def ring(self) -> None:
        if self.party.alive and not self._life.ended:
            self._life.resume_in(0.0) if self._life is not self._running() else None

    def _running(self) -> Actor | None:
        try:
            return self.month.stage.actor()
        except KeyError:
            return None

    def end(self) -> None:
        """As SIGTERM does: switches stop at a safe point, then the process ends."""
        self._ending = True
        self.loop.interrupt()
        self.ring()

    @property
    def files(self) -> Files:
        return self.loop._files

    def _live(self) -> None:
        while not self._ending:
            self.loop.keep()
            if not self._ending:
                self._wait()
        while self.loop._running:
            self.month.stage.rest(0.5)
        self.month.ended(self)

    def _wait(self) -> None:
        moment = self.loop.next_moment()
        now = self.month.world.clock.utc()
        seconds = ROUND_S if moment is None else min(ROUND_S, max(0.0, (moment - now) / timedelta(seconds=1)))
        self.month.stage.rest(seconds)


@dataclass
class PersonsSwitch:
    """`vgpuctl switch SHIFT --yes`, as `cli/acting/act.py` does it."""

    process: Process
    shift: str
    timetable: str
    ended: str = ""

    def run(self) -> None:
        try:
            self._run()
        except VgpuctlError as error:
            self.ended = f"refused: {error.message}"
        self.process.month.person_ended(self)

    def _run(self) -> None:
        month, connection = self.process.month, self.process.connection
        files = month.written_files()
        table = files.timetables[self.timetable]
        fleet = connection.fleet()
        if unheard := fleet.unheard():
            raise PassingError(unheard)
        now = month.world.clock.utc()
        order = order_of_switch(table, self.shift, fleet.orders, self.process.party.name, now)
        operation = Operation(
            world=connection.world(),
            listener=Silent(lambda text: month.log(f"{self.process.party.name}: {text}")),
            timetable=table.name,
            orders=order.changes,
            outcomes=lambda report, fleet: order.outcomes(report.hosts, fleet),
            make_runner=self.process.make_runner,
        )

        def wish(fleet: Fleet) -> Any:
            return switch_wish(fleet, files.catalogue, table, self.shift, month.world.clock.utc())

        report = operation.carry_out(wish, former_wish)
        self.ended = " ".join(f"{host.host} {host.end}" for host in report.hosts)

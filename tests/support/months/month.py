"""One integer, one month of the daemon: estate, files, people, outages and crashes all follow from it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.support.adventures import BEGAN, Adventure
from tests.support.circumstances import drawn
from tests.support.months.happenings import Happenings, synced
from tests.support.months.processes import Connection, Instance, PersonsSwitch, Process, Sender
from tests.support.months.referee import Referee
from tests.support.months.rules import DAY, MINUTE, Rules, Said, drawn_rules
from tests.support.months.servers import DURATION_S, LeaseServer, LedgerServer, Party
from tests.support.months.signs import is_changed
from tests.support.months.stage import KilledError, Stage
from tests.support.overfull import overfull
from vgpuctl.daemon.watched_files import WatchedFiles
from vgpuctl.files import Files
from vgpuctl.model.conduct import Mode, OnStuck
from vgpuctl.model.errors import UsageError
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.requests import Request
from vgpuctl.model.timetable import Timetable
from vgpuctl.operations import look_ahead
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.wishes import switch_wish
from vgpuctl.sim.world import World

ELECTION_S = DURATION_S + 2.0
NEVER_S = -1e9
#: How long after a change of powers or files we believe that it caused a new try.
DIGESTS_S = 120.0
#: Things that happen beside the starts, on a virtual day.
A_DAY = 8


@dataclass
class Month(Adventure):
    """An estate over which daemons and people act. `counts`: what has really been executed.

    `busy_s`: when a switch was last at work. `vcenter_away`: ("vCenter",) while it is away.
    """

    seed: int = 0
    quiet: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.stage = Stage(self.world.clock)
        self.sight = self._seen
        self.leases = LeaseServer(self.stage)
        self.ledger = LedgerServer(lambda: self.now_s)
        self.told: list[str] = []
        self.lags_s: Mapping[str, float] = {}
        self.lag_s = 0.0
        self.busy_s = 0.0
        self.vcenter_away: tuple[str, ...] = ()
        self.kubernetes_away_since_s: float | None = None
        self._numbers = self._daemons = 0
        self._written_s = 0.0
        self._plain, self._versions = self.files, 0
        self.broken_file = False
        rules = {table.name: drawn_rules(self.chance, table) for table in self.tables}
        self.referee = Referee(self, Said(rules=rules))
        self._files_by_rules: dict[int, tuple[Files, dict[str, Rules]]] = {}
        self.leader: Instance | None = None
        self.instances: list[Instance] = []
        self.waiting: list[PersonsSwitch] = []
        self._came_s: dict[str, float] = {}
        self._trouble_until_s = 0.0
        self.down_until_s = 0.0
        self.closed_budgets = 0
        self._powered_s: dict[str, float] = {}
        self.write_files(rules)
        self.happenings = Happenings(self)
        self.ledger.rings.append(self._hears_orders)

    # Time, and what is true.

    @property
    def now_s(self) -> float:
        return self.world.clock.now_s

    @property
    def now(self) -> datetime:
        return self.world.clock.utc()

    def log(self, text: str) -> None:
        self.told.append(f"{self.now:%d %H:%M:%S} {text}")

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def places(self) -> list[tuple[Timetable, str]]:
        fleet = self.fleet()
        return [
            (t, host)
            for t in self.tables
            for host in sorted({w.host for w in fleet.workers.values() if t.keeps(w.name, "")})
        ]

    def came_s(self, uid: str) -> float:
        """When a pod was first seen."""
        return self._came_s.get(uid, NEVER_S)

    def hindered(self, workers: list[Worker]) -> bool:
        """True if people have left something behind that no switch may take away."""
        names = {worker.name for worker in workers}
        return bool(names & (self.judge.foreign | self.people.bare)) or self.closed_budgets > 0

    def is_refused(self, table: Timetable, shift: str, host: str) -> bool:
        """True if `vgpuctl switch` would refuse this host, too: its cards, budgets or pods leave no way."""
        fleet = self.fleet()
        wish = switch_wish(fleet, self.files.catalogue, table, shift, self.now)
        found = {refusal.host for refusal in look_ahead(fleet, wish).refusals}
        return host in found or bool(found and table.conduct.all_or_nothing)

    def changed(self, fleet: Fleet, host: str, sign: str, was: str) -> bool:
        """True if something that a try failed on is otherwise now, by our own reading."""
        found = is_changed(fleet, sign, was)
        if found is not None:
            return found
        # The cards' sign is a digest of the power states on the host; the files' one is of the files.
        since_s = self._powered_s.get(host, NEVER_S) if sign.startswith("card-room") else self._written_s
        return self.now_s - since_s < DIGESTS_S

    # Files.

    def write_files(self, rules: dict[str, Rules]) -> None:
        tables = {t.name: rules[t.name].written(t) for t in self._plain.timetables.values()}
        self.files = replace(self._plain, timetables=tables)
        self._versions += 1
        self._written_s = self.now_s
        self._files_by_rules[id(self.files)] = self.files, rules
        self.tables = tuple(tables.values())

    def written_files(self) -> Files:
        return self.files

    def rules_of(self, connection: Connection) -> dict[str, Rules]:
        """Return the rules of the files that a process has in force."""
        owner = next((each for each in self.instances if each.connection is connection), None)
        files = owner.files if owner else self.files
        return self._files_by_rules[id(files)][1]

    def tables_of(self, _sender: Sender) -> tuple[Timetable, ...]:
        return self.tables

    def watched_files(self, instance: Process) -> WatchedFiles:
        def read() -> Files:
            if self.broken_file:
                raise UsageError("day-night.yaml cannot be used: a key is misspelt.")
            return self.files

        def rest(seconds: float) -> None:
            self.stage.rest(seconds)

        return WatchedFiles(lambda: (self._versions, self.broken_file), read, self.log, lambda: self.now, rest)

    # Processes.

    def start(self, name: str) -> Instance:
        instance = Instance(self, name)
        self.instances.append(instance)
        self.elect()
        return instance

    def leads(self, instance: Instance) -> bool:
        return (
            self.leader is instance
            and instance.party.alive
            and instance.party.silent_for(self.now_s) < DURATION_S * 2 / 3
        )

    def elect(self) -> None:
        """The first that can reach Kubernetes leads, if no other one can."""
        leader = self.leader
        if (
            leader is not None
            and (leader.party.alive or leader.party.silent_s is not None)
            and leader.party.silent_for(self.now_s) < DURATION_S
        ):
            return
        able = [each for each in self.instances if each.party.alive and each.party.reaches and not each._ending]
        if able and able[0] is not leader:
            if leader is not None:
                self.counts["handovers"] += 1
            self.leader = able[0]
            self.log(f"{able[0].party.name} leads")
            able[0].ring()

    def start_another(self) -> None:
        if self.broken_file:
            # At the start, a broken file ends the daemon with code 2. The kubelet starts it again and again.
            self.counts["starts on broken files"] += 1
            self.world.clock.after(30.0, self.start_if_none)
            return
        self._daemons += 1
        self.start(f"daemon-{self._daemons}")

    def start_if_none(self) -> None:
        if (
            not any(each.party.alive and not each._ending for each in self.instances)
            and self.now_s >= self.down_until_s
        ):
            self.start_another()

    def parties(self) -> list[Party]:
        return [*(each.party for each in self.instances), *(each.process.party for each in self.waiting)]

    def hear_again(self, parties: list[Party]) -> None:
        """These processes reach Kubernetes again, unless all of it is away."""
        for party in parties:
            party.silent_s = self.kubernetes_away_since_s if party.alive else party.silent_s
        self.elect()

    def _hears_orders(self) -> None:
        said = synced(self.referee.said, self.ledger.true.orders)
        if said != self.referee.said:
            self.referee.hears(said)

    def ended(self, instance: Instance) -> None:
        """An instance has ended in good order: it gives its leadership up."""
        instance.party.alive = False
        self.instances.remove(instance)
        if self.leader is instance:
            self.leader = None
            self.world.clock.after(2.0, self.elect)

    def person_ended(self, switch: PersonsSwitch) -> None:
        self.log(f"{switch.process.party.name}'s switch to {switch.shift}: {switch.ended}")
        switch.process.party.alive = False
        self.waiting.remove(switch)
        self.hears_waiting()

    def hears_waiting(self) -> None:
        waits = bool(self.leases.asked)
        if self.referee.said.waiting != waits:
            self.referee.hears(replace(self.referee.said, waiting=waits))

    # What arrives.

    def sends(self, sender: Sender, request: Request) -> None:
        self.busy_s = self.now_s
        self.hears_waiting()
        name = f"{type(request).__name__} {getattr(request, 'worker', '') or getattr(request, 'node', '')}"
        self.sent.append(name)
        party = sender.party
        if self.leases.holder is not party:
            self.broken.append(f"two writers: {party.name} writes without the Lease ({self.now_s:.1f} s)")
        if law := broken_by(request, self.fleet()) and broken_by(request, sender.seen):
            self.broken.append(f"{name}: {law} ({self.now_s:.1f} s)")
        self.judge.run = party.number
        self.referee.judges(sender, request)

    def after_write(self, party: Party) -> None:
        """A process may die right after a write."""
        for process in tuple(self.instances):
            if process.party is party and process.dies_after is not None:
                process.dies_after -= 1
                if process.dies_after <= 0:
                    self.crash(process)
                    raise KilledError

    def carry(self, errand: Any) -> Any:
        self.judge.run = errand.run
        self.judge.lag_s = self.lag_s
        return super().carry(errand)

    def at_vcenter(self, call: Any) -> None:
        super().at_vcenter(call)
        if call.method.endswith("VM_Task") or call.method == "ShutdownGuest":
            vm = self.world.center.subject(call.this)
            self._powered_s[vm.host.name] = self.now_s

    def crash(self, instance: Instance) -> None:
        self.log(f"{instance.party.name} dies")
        self.counts["crashes"] += 1
        if any(instance.loop._running):
            self.counts["crashes in a switch"] += 1
        self.instances.remove(instance)
        but = None
        with suppress(KeyError):
            but = self.stage.actor()
        instance.die(but)
        self.referee.stir()
        self.world.clock.after(ELECTION_S, self.elect)
        self.world.clock.after(ELECTION_S, self.start_if_none)

    # How it goes.

    def _is_led(self) -> bool:
        """True if an instance leads and can reach both servers."""
        leader = self.leader
        return leader is not None and leader.party.alive and leader.party.reaches and not self.vcenter_away

    def minute(self) -> None:
        for pod in self.world.kubernetes.store.all("pods"):
            self._came_s.setdefault(pod["metadata"]["uid"], self.now_s)
        if any(each.loop._running for each in self.instances) or self.waiting or not self._is_led():
            self.busy_s = self.now_s
        self.hears_waiting()
        self.broken += overfull(self.fleet())
        self.referee.minute()
        self.world.clock.after(MINUTE / timedelta(seconds=1), self.minute)

    def play(self, days: int, until_s: float | None = None) -> None:
        self.start_another()
        self.minute()
        if not self.quiet:
            self.happenings.plan(self.seed, days, A_DAY)
        self.referee.stir()
        self.world.wait(until_s or days * DAY / timedelta(seconds=1))
        self.stage.end()
        self.broken += [*self.judge.broken, *self.referee.broken]
        self.broken += [f"an actor ended with {error!r}" for error in self.stage.faults]


def month(seed: int, days: int, *, quiet: bool = False, until_s: float | None = None) -> Month:
    chance = random.Random(f"month {seed}")
    some = drawn(chance)
    while any(table.mode is Mode.REPLACE for table in some.files.timetables.values()):
        some = drawn(chance)
    tables = {name: _feasible(table, chance) for name, table in some.files.timetables.items()}
    some = replace(some, files=replace(some.files, timetables=tables))
    lived = Month(World(some.inventory, some.durations, began=BEGAN), some.files, chance=chance, seed=seed, quiet=quiet)
    for path, body in some.pods:
        lived.kubectl("POST", path, body)
    lived.wait(60)
    lived.play(days, until_s)
    return lived


def _feasible(table: Timetable, chance: random.Random) -> Timetable:
    """Return the timetable with settings that can be carried out: a month is about who wins, not about refusals."""
    stuck = chance.choice([OnStuck.BACK, OnStuck.BACK, OnStuck.FORCE])
    return replace(
        table,
        # Where all workers of a card must be out at once, a smaller share only refuses.
        max_unavailable=None,
        conduct=replace(table.conduct, on_stuck=stuck),
        drain=replace(table.drain, force=True, delete_emptydir_data=True),
    )

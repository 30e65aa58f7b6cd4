"""Who wins, by the table in docs/how-to/daemon.md alone: what must not be written, and which shift must be in force.

It never asks the product's planning. An order counts from the moment at which it could be seen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.support.months.rules import DueNow, Rules, Said, due_now, is_spared
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.requests import (
    DeletePod,
    Evict,
    PatchNode,
    PowerOnVm,
    Request,
)
from vgpuctl.model.timetable import Shift, Timetable

if TYPE_CHECKING:
    from tests.support.months.month import Month
    from tests.support.months.processes import Sender

#: The daemon asks for orders once a second, sees them after the lag of its stream, and finishes what is in flight.
STEERS_S = 3.0
#: After a minute of calm, the daemon has looked at everything once more.
CALM_S = 75.0
LOOKS_EVERY_S = 5.0
#: A moment has whole microseconds, and the clock has not.
MICROSECOND_S = 1e-6
#: A switch must end, whatever happens: each drain has a timeout, and each task ends.
LONGEST_S = 3600.0
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Write:
    """A write of the daemon. `first`: its host was whole until now, in the shift `whole`.

    With `all_or_nothing`, a host that is whole goes back because another one failed: that begins nothing.
    """

    sender: Sender
    request: Request
    worker: Worker
    table: Timetable
    whole: str
    disturbs: bool

    @property
    def host(self) -> str:
        return self.worker.host

    @property
    def first(self) -> bool:
        runner = self.sender.runner
        back = runner is not None and self.host in runner.state().going_back
        return bool(self.whole) and self.disturbs and not back

    @property
    def key(self) -> Key:
        return self.table.name, self.host


class Referee:
    """`broken`: what was against the table. `counts`: what it has really judged."""

    def __init__(self, month: Month, said: Said) -> None:
        self._month = month
        self.broken: list[str] = []
        self.counts: Counter[str] = Counter()
        self._said: list[tuple[float, Said]] = [(0.0, said)]
        self._stirred_s = self._looked_s = 0.0
        #: By timetable and host: the start in which the host was last whole, and the last start that was begun.
        self._arrived: dict[Key, DueNow] = {}
        self._begun: dict[Key, tuple[DueNow, list[float]]] = {}
        self._touched: dict[Key, datetime] = {}
        self._hopeful_s: dict[Key, float] = {}
        #: Workers that a person moved: must they be left alone (table, power, start); and when each was moved at all.
        self.hands: dict[str, tuple[str, str, datetime]] = {}
        self.moved: dict[str, datetime] = {}

    @property
    def said(self) -> Said:
        return self._said[-1][1]

    def hears(self, said: Said) -> None:
        self._said.append((self._month.now_s, said))
        self.stir()

    def stir(self) -> None:
        """Something has happened: what follows from it takes its time."""
        self._stirred_s = self._month.now_s

    # What must not be written.

    def judges(self, sender: Sender, request: Request) -> None:
        write = self._write(sender, request)
        if write is None or not sender.party.gives_way:
            return
        self.looks(at_once=True)
        self.counts["writes"] += 1
        grace_s = STEERS_S + self._month.lag_s
        if why := self._forbidden_throughout(write, grace_s):
            self._breaks(f"{why}: {_words(write)}")
        self._touched[write.key] = self._month.now
        if write.first:
            self.counts["beginnings"] += 1
            self._begins(write)
        if isinstance(request, Evict | DeletePod):
            self._evicts(write, request.pod.uid)

    def _write(self, sender: Sender, request: Request) -> Write | None:
        fleet = self._month.fleet()
        pod = getattr(request, "pod", None)
        name = getattr(request, "worker", "") or getattr(request, "node", "") or (pod.node if pod else "")
        worker = fleet.find(name)
        table = next((t for t in self._month.tables_of(sender) if worker and t.keeps(worker.name, "")), None)
        if worker is None or table is None:
            return None
        return Write(sender, request, worker, table, whole_in(fleet, table, worker.host), _disturbs(request, worker))

    def _forbidden_throughout(self, write: Write, grace_s: float) -> str:
        """Return why the write is forbidden, if it was so all the time in which an order could be seen."""
        now_s, now = self._month.now_s, self._month.now
        since_s = now_s - grace_s
        in_force = [said for when_s, said in self._said if when_s > since_s]
        in_force.append([said for when_s, said in self._said if when_s <= since_s][-1] if since_s > 0 else self.said)
        moments = (now, now - timedelta(seconds=grace_s))
        reasons = [next(self._forbidden(write, said, moment), "") for said in in_force for moment in moments]
        return reasons[0] if all(reasons) else ""

    def _forbidden(self, write: Write, said: Said, now: datetime) -> Iterator[str]:
        due = due_now(said, write.sender.rules[write.table.name], now)
        if _active(said.holds.get(write.worker.name), now):
            yield "2: the worker is held"
        if _active(said.maintenance.get(write.host), now):
            yield "2: the host is under maintenance"
        if said.waiting:
            yield "3: a person waits"
        if said.pause and said.pause.active(now) and (said.pause.what or write.first):
            yield "4: it is paused"
        table, power, start = self.hands.get(write.worker.name, ("", "", None))
        if (table, start) == (write.table.name, due.start) and write.worker.on == (power == "on"):
            yield "a worker that was moved by hand is not left alone"
        if write.first and (why := _wrong_way(write, due)):
            yield why

    def _begins(self, write: Write) -> None:
        """The first write on a whole host: rules 5, 7 and 8."""
        runner = write.sender.runner
        assert runner is not None
        taken_s = runner.taken_s.get(write.host, self._month.now_s)
        taken = self._month.world.clock.began + timedelta(seconds=taken_s - self._month.lag_s)
        rules = write.sender.rules[write.table.name]
        due = self._due_at(rules, taken)
        now_due = self._due_at(rules, self._month.now)
        before = self._begun.get(write.key)
        tried = before[1] if before and _same(before[0], now_due) else []
        if not now_due.ordered and _same(due, now_due) and not self._was_in(write.key, due):
            if why := _too_late(rules, due, taken) if not tried else "":
                self._breaks(f"7: {why}: {_words(write)}")
            timing = rules.timing[due.shift]
            begin_by = None if timing.begin_by is None else due.start + timing.begin_by
            if rules.spares and (begin_by is None or taken < begin_by) and self._spared(write, due, taken_s):
                self._breaks(f"8: pods ask not to be disturbed: {_words(write)}")
        if why := self._not_yet(write.key, now_due):
            self._breaks(f"5: {why}: {_words(write)}")
        if tried:
            self.counts["retries"] += 1
        self._begun[write.key] = now_due, [*tried, self._month.now_s]

    def _due_at(self, rules: Rules, now: datetime) -> DueNow:
        at_s = (now - self._month.world.clock.began).total_seconds()
        # What is ordered now counts now.
        said = [said for when_s, said in self._said if when_s <= max(at_s, 0.0) + MICROSECOND_S][-1]
        return due_now(said, rules, now)

    def _was_in(self, key: Key, due: DueNow) -> bool:
        arrived = self._arrived.get(key)
        return arrived is not None and _same(arrived, due)

    def _spared(self, write: Write, due: DueNow, since_s: float) -> bool:
        fleet, shift = self._month.fleet(), write.table.shifts[due.shift]
        leaving = [each for each in _mine(fleet, write.table, write.host) if each.on and each.name not in shift.workers]
        pods = [pod for worker in leaving for pod in (worker.node.pods if worker.node else ())]
        return any(is_spared(pod) and self._month.came_s(pod.uid) < since_s - self._month.lag_s for pod in pods)

    def _not_yet(self, key: Key, due: DueNow) -> str:
        """Return why a host that has failed is not to be tried now: by its entry, and by what of it is still so."""
        found = self._outcome(key, due)
        if not found or self._month.now_s - self._hopeful_s.get(key, -1e9) <= STEERS_S + LOOKS_EVERY_S:
            return ""
        if found["parked"]:
            return "parked"
        again = datetime.fromisoformat(found["again"]) if found["again"] else None
        return "before its pause is over" if again and self._month.now < again else ""

    def has_settled(self, key: Key, due: DueNow) -> bool:
        """True if the cluster knows that the host has arrived in this start."""
        found = self._outcome(key, due)
        return found is not None and bool(found["arrived"])

    def _outcome(self, key: Key, due: DueNow) -> dict[str, Any] | None:
        text = self._month.ledger.texts.get(f".outcome.{key[0]}.{key[1]}")
        found = json.loads(text) if text else None
        if found and (found["shift"], datetime.fromisoformat(found["start"])) == (due.shift, due.start):
            return dict(found)
        return None

    def _evicts(self, write: Write, uid: str) -> None:
        """On a retry, no pod goes before the pods that the last try failed on are gone."""
        begun, runner = self._begun.get(write.key), write.sender.runner
        if not begun or runner is None or write.host in runner.state().going_back:
            return
        now_due = self._due_at(write.sender.rules[write.table.name], self._month.now)
        found = self._outcome(write.key, now_due) if _same(begun[0], now_due) else None
        written_s = self._month.ledger.written_s.get(f".outcome.{write.table.name}.{write.host}", 0.0)
        if not found or written_s >= begun[1][-1]:
            return
        failed_on = {value for name, value in found["failedOn"].items() if name.startswith("pod ")}
        here = {
            pod.uid
            for each in _mine(self._month.fleet(), write.table, write.host)
            for pod in (each.node.pods if each.node else ())
        }
        self.counts["evictions of a retry"] += 1
        if uid not in failed_on and failed_on & here:
            self._breaks(f"a retry evicts another pod before the pods that it failed on are gone: {_words(write)}")

    # What must be in force.

    def looks(self, *, at_once: bool = False) -> None:
        """Remember which hosts are whole, and which failed hosts may hope for another try."""
        if not at_once and self._month.now_s - self._looked_s < LOOKS_EVERY_S:
            return
        self._looked_s = self._month.now_s
        fleet = self._month.fleet()
        for table, host in self._month.places():
            due, key = self._due_at(self.said.rules[table.name], self._month.now), (table.name, host)
            if whole_in(fleet, table, host) == due.shift:
                self._arrived[key] = due
            found = self._outcome(key, due)
            if found and any(self._month.changed(fleet, host, name, was) for name, was in found["failedOn"].items()):
                self._hopeful_s[key] = self._month.now_s

    def minute(self) -> None:
        """Once all has been calm, each host that nothing excepts is in its shift."""
        fleet = self._month.fleet()
        for table, host in self._month.places():
            rules = self.said.rules[table.name]
            due = self._due_at(rules, self._month.now)
            calm_since = self._month.now - timedelta(seconds=CALM_S)
            calm = self._month.now_s - max(self._stirred_s, self._month.busy_s) > CALM_S + self._month.lag_s
            if not calm or not _same(self._due_at(rules, calm_since), due):
                continue
            why = next(self._excepted(fleet, table, host, due, calm_since), "")
            good = whole_in(fleet, table, host) == due.shift
            if not why and not good and self._month.is_refused(table, due.shift, host):
                why = "refused"
            self.counts[f"host minutes {f'excepted: {why}' if why else 'judged'}"] += 1
            if not why and not good:
                state = _state(fleet, table, host)
                self._breaks(f"{host} is not in {due.shift} of {table.name}, and nothing is in its way: {state}")

    def _excepted(self, fleet: Fleet, table: Timetable, host: str, due: DueNow, since: datetime) -> Iterator[str]:
        said, now, key = self.said, self._month.now, (table.name, host)
        mine = _mine(fleet, table, host)
        if any(_active(said.holds.get(each.name), moment) for each in mine for moment in (since, now)):
            yield "held"
        if any(_active(said.maintenance.get(host), moment) for moment in (since, now)):
            yield "maintenance"
        if said.pause and any(said.pause.active(moment) for moment in (since, now)):
            yield "paused"
        early = said.rules[table.name].timing[due.shift].early
        begun = due.start - early if isinstance(early, timedelta) and not due.ordered else due.start
        if any(each.name in self.moved and self.moved[each.name] >= begun for each in mine):
            yield "moved by hand"
        if self._month.hindered(mine):
            yield "hindered by people"
        found, touched = self._outcome(key, due), self._touched.get(key)
        if found and touched and found["tries"] > 0:
            again = datetime.fromisoformat(found["again"]) if found["again"] else None
            if found["parked"] or (again and since < again):
                yield "failed before"
        if due.ordered or self._was_in(key, due):
            return
        rules = said.rules[table.name]
        if _too_late(rules, due, now):
            yield "too late"
        timing = rules.timing[due.shift]
        if rules.spares and (timing.begin_by is None or since < due.start + timing.begin_by):
            yield "pods"

    def _breaks(self, what: str) -> None:
        self.broken.append(f"{what} ({self._month.now_s:.1f} s, {self._month.now:%H:%M:%S})")


def whole_in(fleet: Fleet, table: Timetable, host: str) -> str:
    """Return the shift in which this host is whole; "" if it is in none, or something is to be given back."""
    mine = _mine(fleet, table, host)
    if any(each.on and each.node and each.node.record for each in mine):
        return ""
    return next((name for name, shift in table.shifts.items() if all(_is_wanted(each, shift) for each in mine)), "")


def _is_wanted(worker: Worker, shift: Shift) -> bool:
    if worker.on is not (worker.name in shift.workers):
        return False
    profile = shift.profile_of(worker.name) if worker.on else None
    return profile is None or sorted(profile.vgpus) == sorted(worker.vgpus)


def _mine(fleet: Fleet, table: Timetable, host: str) -> list[Worker]:
    return [each for each in fleet.workers.values() if each.host == host and table.keeps(each.name, "")]


def _active(order: Any, now: datetime) -> bool:
    return order is not None and order.active(now)


def _same(one: DueNow, other: DueNow) -> bool:
    return (one.shift, one.start) == (other.shift, other.start)


def _disturbs(request: Request, worker: Worker) -> bool:
    """True for everything but labels and marks on a worker that stays as it is."""
    if isinstance(request, PatchNode):
        return worker.on and any(request.annotations.values())
    return True


def _wrong_way(write: Write, due: DueNow) -> str:
    if write.whole == due.shift:
        return f"9: the host is whole in {due.shift}, which is due"
    wanted = write.worker.name in write.table.shifts[due.shift].workers
    wakes = isinstance(write.request, PowerOnVm)
    other = any(write.worker.name not in shift.workers for shift in write.table.shifts.values())
    return f"6: {due.shift} is due, and this leads elsewhere" if other and wakes is not wanted else ""


def _too_late(rules: Rules, due: DueNow, now: datetime) -> str:
    timing = rules.timing[due.shift]
    if timing.skip_after is not None and now >= due.start + timing.skip_after:
        return f"{due.shift} is skipped"
    if timing.min_run is not None and due.ends - now < timing.min_run:
        return f"too little of {due.shift} remains"
    return ""


def _words(write: Write) -> str:
    return f"{type(write.request).__name__} on {write.worker.name} ({write.host}), whole in {write.whole or 'nothing'}"


def _state(fleet: Fleet, table: Timetable, host: str) -> str:
    return ", ".join(
        f"{each.name} {each.power}{' marked' if each.node and each.node.record else ''}"
        for each in _mine(fleet, table, host)
    )

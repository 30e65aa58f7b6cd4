"""The wishes that the commands make."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from vgpuctl.basics.names import Names
from vgpuctl.model.conduct import Asleep, Conduct, Mode
from vgpuctl.model.departure import Departure
from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.orders import Orders
from vgpuctl.model.profiles import Catalogue, Profile
from vgpuctl.model.record import Record
from vgpuctl.model.timetable import DrainOptions, Shift, Timetable
from vgpuctl.model.wish import Sleep, Wish, WorkerWish
from vgpuctl.planning.checks.card_room import against_room
from vgpuctl.planning.coming_starts import next_starts
from vgpuctl.planning.departures import departures
from vgpuctl.planning.pods.drain import lost_with_state
from vgpuctl.planning.scaling import former_workloads, must_be_seen, with_scaled, workload_wishes
from vgpuctl.planning.steps import equipped

PROVISION = "provision"
MAINTENANCE = "maintenance"
BACK_FROM = "back from "


def switch_wish(
    fleet: Fleet, catalogue: Catalogue, timetable: Timetable, shift: str, now: datetime | None = None
) -> Wish:
    """Return the wish of a shift: its workers awake and labelled, the timetable's others asleep.

    `now`: to say until when they sleep, and which orders are in force.
    """
    must_be_seen(fleet, timetable.shifts[shift])
    mine = timetable.workers(fleet)
    sleeps = SleepNotes(timetable, shift, fleet.orders, now)
    left = departures(fleet, timetable, shift)
    workloads = workload_wishes(fleet, timetable, timetable.shifts[shift], left)
    # vSphere: only a suspend keeps processes. A shutdown ends them, so then no pod is frozen.
    drain = replace(timetable.drain, freeze=timetable.conduct.asleep is Asleep.SUSPEND)
    wish = Wish(
        name=shift,
        timetable=timetable.name,
        catalogue=catalogue,
        workers={
            w.name: replace(_in_shift(w, catalogue, timetable.shifts[shift], left[w.host]), sleep=sleeps.of(w))
            for w in mine
        },
        departures=left,
        workloads=workloads,
        drain=with_scaled(drain, fleet, workloads),
        conduct=timetable.conduct,
        mode=timetable.mode,
        max_unavailable=timetable.max_unavailable.of(len(mine)) if timetable.max_unavailable else None,
        maintenance=fleet.orders.maintained(now) if now else {},
    )
    return replace(wish, awake_before=_awake_before(fleet, wish))


class SleepNotes:
    """What the nodes of sleeping workers say in a shift.

    The starts of shifts are looked up once, not for each worker.
    """

    def __init__(self, timetable: Timetable, shift: str, orders: Orders, now: datetime | None) -> None:
        self._table, self._shift = timetable, timetable.shifts[shift]
        starts = next_starts(timetable, orders, now) if now else {}
        self._starts = {name: start for name, start in starts.items() if start is not None}

    def of(self, worker: Worker) -> Sleep | None:
        """Return what this worker's node says; None for a worker that is awake."""
        if self._shift.wakes(worker):
            return None
        waking = (start for name, start in self._starts.items() if self._table.shifts[name].wakes(worker))
        until = min(waking, default=None)
        said = until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if until else ""
        return Sleep(why=f"{self._shift.name} of {self._table.name}", until=said)


def _in_shift(worker: Worker, catalogue: Catalogue, shift: Shift, left: Departure) -> WorkerWish:
    """Return one worker's wish: it carries what the shift gives it, else the devices of its profile."""
    profile, awake = shift.profile_of(worker.name), shift.wakes(worker)
    # Decision 0012: what the VM carried when its host was last whole is what a way back restores.
    before = left.carried.get(worker.name, worker.vgpus)
    if profile is not None:
        return WorkerWish(vgpus=profile.vgpus, change=True, awake=awake, label=awake, before=before)
    return WorkerWish(vgpus=_profile_of(worker, catalogue), awake=awake, label=awake, before=before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioning:
    """How provisioning goes about it.

    `profile`: one profile for all selected workers, instead of the profiles in the files.
    `now`: to say which orders are in force.
    `exchanged`: returns the profiles that a worker carries by turns, if its profile changes with the shift.
    """

    only: Names | None = None
    profile: str | None = None
    drain: DrainOptions = field(default_factory=DrainOptions)
    max_unavailable: int | None = None
    power_off_after_s: float | None = None
    now: datetime | None = None
    exchanged: Callable[[str], tuple[Profile, ...]] = lambda _: ()


def provision_wish(fleet: Fleet, catalogue: Catalogue, how: Provisioning) -> Wish:
    """Return the wish for every selected worker: its profile's devices, in the power state in which it was found."""
    workers = {
        worker.name: WorkerWish(
            vgpus=(vgpus := _to_carry(worker, catalogue, how)),
            change=True,
            awake=_to_give_back(worker, vgpus),
            before=_carried_before(worker),
        )
        for worker in fleet.workers.values()
        if how.only is None or worker.name in how.only
    }
    return Wish(
        name=PROVISION,
        catalogue=catalogue,
        workers=workers,
        awake_before=frozenset(name for name, mine in workers.items() if mine.awake),
        drain=how.drain,
        max_unavailable=how.max_unavailable,
        conduct=Conduct(power_off_after_s=how.power_off_after_s),
        maintenance=fleet.orders.maintained(how.now) if how.now else {},
    )


def _to_carry(worker: Worker, catalogue: Catalogue, how: Provisioning) -> tuple[str, ...]:
    """Return the vGPUs that the worker shall carry. What a shift gave it stays."""
    given = (profile.vgpus for profile in how.exchanged(worker.name))
    if how.profile is None and any(sorted(vgpus) == sorted(worker.vgpus) for vgpus in given):
        return worker.vgpus
    return catalogue.profile(how.profile or worker.profile).vgpus


def label_wish(fleet: Fleet, catalogue: Catalogue, *, prune: bool = False) -> Wish:
    """Return the wish that makes every node's labels true."""
    workers = {name: WorkerWish(label=True) for name in fleet.workers}
    return Wish(name="label-nodes", catalogue=catalogue, workers=workers, prune=prune)


def maintenance_wish(fleet: Fleet, catalogue: Catalogue, hosts: Iterable[str], given_up: frozenset[str]) -> Wish:
    """Return the wish before a patch of these hosts: suspended workers are really off. Everything else stays as it is.

    `given_up`: the UIDs of pods that may be lost with the suspended states. A worker with another such pod is left out.
    """
    # vSphere: a suspended VM may not resume after an upgrade of its host or of its vGPU manager.
    asleep = [worker for host in hosts for worker in fleet.on_host(host) if worker.power is Power.SUSPENDED]
    discarded = (w for w in asleep if {pod.uid for pod in lost_with_state(w.node)} <= given_up)
    workers = {worker.name: WorkerWish(cold=True, given_up=given_up) for worker in discarded}
    return Wish(name=MAINTENANCE, catalogue=catalogue, workers=workers)


def former_wish(wish: Wish) -> Wish:
    """Return the way back: workers that were awake wake again, the others sleep.

    No devices change, except the ones that the shift itself exchanges.
    """
    # Decision 0001: going back has no code path of its own. It is a plan for this wish.
    workers = {name: _former(mine, wish, was_awake=name in wish.awake_before) for name, mine in wish.workers.items()}
    return replace(
        wish,
        name=f"{BACK_FROM}{wish.name}",
        workers=workers,
        workloads=former_workloads(wish),
        # The way back evicts what it must at once: it has failed on no pod yet.
        drain_first=frozenset(),
    )


def _former(mine: WorkerWish, wish: Wish, *, was_awake: bool) -> WorkerWish:
    awake = True if was_awake else (False if mine.awake is not None else None)
    sleep = mine.sleep or Sleep(why=f"{BACK_FROM}{wish.name}") if awake is False else None
    # In `replace` the same VM carries another profile by shift, so the former devices belong to the former wish.
    if wish.mode is Mode.REPLACE:
        return WorkerWish(vgpus=mine.before, change=mine.before is not None, awake=awake, sleep=sleep)
    return WorkerWish(awake=awake, before=mine.before, after=mine.vgpus if mine.change else None, sleep=sleep)


def with_devices_back(fleet: Fleet, former: Wish) -> Wish:
    """Return the way back with changed devices, on hosts where the workers to wake have no room as they are now.

    There, workers that are off get the devices they carried before. If neighbours run with their new vGPUs already and
    the card has that size, the workers that are off get the new ones too.
    """
    given: dict[str, WorkerWish] = {}
    for host in {fleet.workers[name].host for name in former.workers if name in fleet.workers} & fleet.hosts.keys():
        workers = [worker for worker in fleet.on_host(host) if worker.name in former.workers]
        # NVIDIA, same size: neighbours that run fix the card's size, so the former devices may find no room.
        as_they_are: dict[str, WorkerWish] = {}
        ways = (as_they_are, _carrying(workers, former, "before"), _carrying(workers, former, "after"))
        good = (way for way in ways if not _crowded(fleet, former, host, workers, way))
        given |= next(good, ways[1])
    return replace(former, workers={**former.workers, **given}) if given else former


def _carrying(workers: list[Worker], former: Wish, which: str) -> dict[str, WorkerWish]:
    """Return wishes with these vGPUs for the workers that are off and carry something else."""
    found: dict[str, WorkerWish] = {}
    for worker in workers:
        mine = former.workers[worker.name]
        vgpus = getattr(mine, which)
        if not worker.on and vgpus is not None and sorted(worker.vgpus) != sorted(vgpus):
            found[worker.name] = replace(mine, vgpus=vgpus, change=True)
    return found


def _crowded(fleet: Fleet, former: Wish, host: str, workers: list[Worker], way: dict[str, WorkerWish]) -> bool:
    wish = replace(former, workers={**former.workers, **way})
    return any(against_room(fleet, wish, fleet.hosts[host], workers))


def _profile_of(worker: Worker, catalogue: Catalogue) -> tuple[str, ...]:
    return catalogue.profile(worker.profile).vgpus


def _cut_short(worker: Worker) -> Record | None:
    """Return what an earlier provision that did not end recorded on this worker."""
    record = worker.node.record if worker.node else None
    return record if record is not None and record.wish.removeprefix(BACK_FROM) == PROVISION else None


def _carried_before(worker: Worker) -> tuple[str, ...]:
    record = _cut_short(worker)
    return worker.vgpus if record is None or record.vgpus_before is None else record.vgpus_before


def _to_give_back(worker: Worker, vgpus: tuple[str, ...]) -> bool | None:
    """Return True if the worker must run afterwards; None leaves its power alone.

    It must run if it will be stopped now, or if it was on before an earlier provision was cut short.
    """
    record = _cut_short(worker)
    # Decision 0002: the record says that it was awake, so that a crash loses no intention.
    cut_short = record is not None and worker.name in record.awake_before
    # vSphere: the VM must be powered off for a change of devices, so it is started again afterwards.
    stopping = worker.on and not equipped(worker, vgpus)
    return True if stopping or cut_short else None


def _awake_before(fleet: Fleet, wish: Wish) -> frozenset[str]:
    """Return the workers that were awake before this switch began.

    If the switch was cut short, these are the recorded workers; else the workers that run.
    """
    before: set[str] = set()
    for host in {worker.host for worker in fleet.workers.values()}:
        mine = [worker for worker in fleet.on_host(host) if worker.name in wish.workers]
        # Decision 0012: a recorded departure says who was awake when the host was last whole.
        left = wish.departures.get(host)
        if left is not None and left.key in fleet.departures:
            before |= set(left.awake)
            continue
        recorded = _recorded(mine, wish) if _unfinished(mine, wish) else set()
        # Decision 0002: where no departure is recorded, what the nodes bear must do.
        before |= recorded or {worker.name for worker in mine if worker.on}
    return frozenset(before)


def _unfinished(workers: list[Worker], wish: Wish) -> bool:
    return any(wish.workers[w.name].awake and not w.on for w in workers)


def _recorded(workers: list[Worker], wish: Wish) -> set[str]:
    records = [w.node.record for w in workers if w.node and w.node.record]
    return {name for record in records if record.wish == wish.name for name in record.awake_before}

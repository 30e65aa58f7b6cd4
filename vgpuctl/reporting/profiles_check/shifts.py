"""Shifts that will never find room, whatever was awake before; and cards that would spread too widely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.hosts import CardMode, Host
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.boards import BY_NAME
from vgpuctl.planning.cards.card_rules import kind_of
from vgpuctl.planning.cards.placement import Vgpus, fits, needs_of
from vgpuctl.planning.cards.policy import policy_trap
from vgpuctl.planning.cards.seating import occupants, possible_seatings
from vgpuctl.planning.checks.card_room import RoomRefusal, against_room
from vgpuctl.planning.wishes import switch_wish
from vgpuctl.reporting.profiles_check.finding import Compared, Finding, Severity
from vgpuctl.reporting.profiles_check.types import holds


def of_shifts(compared: Compared) -> Iterator[Finding]:
    for timetable in compared.timetables:
        asleep = _all_asleep(compared, timetable)
        for shift in timetable.shifts.values():
            wish = switch_wish(asleep, compared.catalogue, timetable, shift.name)
            for host in asleep.hosts.values():
                yield from _on_host(compared, asleep, wish, shift, host)
    if not compared.timetables:
        for host in compared.fleet.hosts.values():
            yield from _trap(compared, host, list(compared.fleet.on_host(host.name)), "")


def _all_asleep(compared: Compared, timetable: Timetable) -> Fleet:
    """Return the fleet with the timetable's workers as provisioned and all asleep.

    The other workers stay as they are. Workers that fit on no card are reported separately.
    """
    fleet = compared.fleet
    ours = {
        worker.name: replace(worker, vgpus=compared.wanted(worker), power=Power.OFF, memory_locked=True)
        for worker in timetable.workers(fleet)
        if all(holds(fleet.hosts[worker.host], vgpu) for vgpu in compared.wanted(worker) if worker.host in fleet.hosts)
    }
    return replace(
        fleet,
        workers={**{name: w for name, w in fleet.workers.items() if not timetable.keeps(name, w.profile)}, **ours},
        hosts={name: _without(host, timetable.workers(fleet)) for name, host in fleet.hosts.items()},
    )


def _without(host: Host, workers: list[Worker]) -> Host:
    names = {worker.name for worker in workers}
    cards = (replace(card, holds=tuple(name for name in card.holds if name not in names)) for card in host.cards)
    return replace(host, cards=tuple(cards))


def _on_host(compared: Compared, asleep: Fleet, wish: Wish, shift: Shift, host: Host) -> Iterator[Finding]:
    on_host = asleep.on_host(host.name)
    awake = [worker for worker in on_host if shift.wakes(worker)]
    if not awake:
        return
    workers = [worker for worker in on_host if worker.name in wish.workers]
    refused = list(against_room(asleep, wish, host, workers))
    against_cards = [refusal for refusal in refused if isinstance(refusal, RoomRefusal)]
    if against_cards and _mixed_would_do(asleep, host, [worker.vgpus for worker in awake]):
        yield _needs_mixed(shift, host, awake)
        refused = [refusal for refusal in refused if refusal not in against_cards]
    for refusal in refused:
        kind = "no-room" if refusal in against_cards else "no-memory"
        yield _no_room(kind, shift, refusal, _sizes(host, awake) if refusal in against_cards else ())
    if not against_cards:
        always = [worker for worker in on_host if worker.name not in wish.workers]
        yield from _trap(compared, host, [*awake, *always], shift.where)


def _mixed_would_do(fleet: Fleet, host: Host, carrying: list[Vgpus]) -> bool:
    """True if the workers would fit in mixed-size mode.

    It looks at cards that are set to same size although their boards know mixed size.
    """
    # vSphere 8.0 U3: a card takes several sizes only in mixed-size mode (`GraphicsConfig.DeviceType.vgpuMode`).
    cards = (replace(c, mode=CardMode.MIXED_SIZE) if c.mode is CardMode.SAME_SIZE else c for c in host.cards)
    mixed = replace(host, cards=tuple(cards))
    later = possible_seatings(mixed, occupants(fleet, mixed, gone=True), carrying)
    return mixed != host and any(fits(loads, needs_of(carrying)) for loads in later.ways)


def _needs_mixed(shift: Shift, host: Host, awake: list[Worker]) -> Finding:
    types = sorted({vgpu for worker in awake for vgpu in worker.vgpus})
    return Finding(
        severity=Severity.ERROR,
        kind="mixed-size-needed",
        where=shift.where,
        about=f"shift {shift.name}",
        what=f"{' and '.join(types)} are awake together on {host.name}, and fit only on a card in mixed-size mode",
        hint="Set the card's vGPU mode to mixed size in vCenter (vSphere 8.0 U3), or give them profiles of one size.",
    )


def _sizes(host: Host, awake: list[Worker]) -> tuple[str, ...]:
    """Return a detail if different sizes are wanted on cards that cannot be set to mixed size at all."""
    boards = [BY_NAME.get(kind_of(card).board) for card in host.cards]
    # NVIDIA: V100 and T4 do not support mixed size; boards of Ampere and newer do.
    several = len({vgpu for worker in awake for vgpu in worker.vgpus}) > 1
    if not several or not boards or any(board is None or board.mixed for board in boards):
        return ()
    models = " ".join(dict.fromkeys(card.model for card in host.cards))
    return (f"sizes share a card only in mixed-size mode, which {models} does not know",)


def _no_room(kind: str, shift: Shift, refusal: Refusal, more: tuple[str, ...]) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        kind=kind,
        where=shift.where,
        what=refusal.message.rstrip("."),
        details=(*refusal.details, *more),
        hint=refusal.hint,
    )


def _trap(compared: Compared, host: Host, workers: list[Worker], where: str) -> Iterator[Finding]:
    # vSphere: `performance` is the default policy. That it springs this trap is inferred.
    if trap := policy_trap(host, [compared.wanted(worker) for worker in workers]):
        yield Finding(
            severity=Severity.WARNING,
            kind="policy-trap",
            where=where,
            about=host.name if not where else "",
            what=str(trap),
            hint="Set the host's assignment policy to consolidation in vCenter (host, Configure, Graphics).",
        )

"""Wishes for which a host has no room, on its cards or in its memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hosts import CardMode, Host
from vgpuctl.model.plan import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.card_rules import Load, kind_of
from vgpuctl.planning.cards.placement import Vgpus, can_be_started, fits, may_choose, needs_of
from vgpuctl.planning.cards.policy import policy_trap
from vgpuctl.planning.cards.releases import stops, vgpus_wished
from vgpuctl.planning.cards.seating import PossibleSeatings, occupants, standing
from vgpuctl.planning.checks.host_memory import Shortage, in_gb, shortage
from vgpuctl.planning.steps import equipped

MODE_WORDS = {
    CardMode.SAME_SIZE: "same size",
    CardMode.MIXED_SIZE: "mixed size",
    CardMode.MIG: "MIG",
}

#: More vGPUs than any vSphere gives one VM; older versions stop at 4 or 8.
MOST_VGPUS = 16


def against_types(wish: Wish, host: Host, workers: list[Worker]) -> Iterator[Refusal]:
    for worker in workers:
        mine = wish.workers[worker.name]
        if not mine.change or not mine.vgpus or equipped(worker, mine.vgpus):
            continue
        if unknown := [vgpu for vgpu in mine.vgpus if host.offers and vgpu not in host.offers]:
            yield Refusal(
                host.name,
                f"{host.name} offers no vGPU type {unknown[0]}, which {worker.name} should carry.",
                hint=f"It offers: {' '.join(host.offers)}",
            )
        if len(mine.vgpus) > MOST_VGPUS:
            yield Refusal(
                host.name,
                f"{worker.name} should carry {len(mine.vgpus)} vGPUs; a VM has at most {MOST_VGPUS}.",
                hint="vSphere 8.0 U2 gives a VM up to 16, 8.0 up to 8, 6.7 U3 up to 4.",
            )


def against_room(fleet: Fleet, wish: Wish, host: Host, workers: list[Worker]) -> Iterator[Refusal]:
    """Refuse workers that have no room on cards or in memory once all leaving workers are gone.

    All workers that shall run must be startable, whatever card vCenter chooses.
    """
    leaving = {w.name for w in workers if stops(wish, w)}
    starting = [w for w in workers if wish.workers[w.name].awake and (not w.on or w.name in leaving)]
    carrying = {w.name: vgpus for w in starting if (vgpus := vgpus_wished(wish, w))}
    if not carrying:
        return
    later = standing(host, occupants(fleet, host, leaving, gone=True), carrying.values())
    if refusal := _cards(wish.name, host, carrying, later):
        staying = [w.vgpus for w in workers if w.on and w.name not in leaving]
        trap = policy_trap(host, [*staying, *carrying.values()])
        details = (*refusal.details, *_holders(fleet, host, leaving), *([str(trap)] if trap else []))
        yield replace(refusal, details=details)
    if short := shortage(fleet, host, leaving, (w for w in starting if w.name in carrying)):
        yield _memory(wish.name, host, list(carrying), short)


def _cards(wish: str, host: Host, carrying: Mapping[str, Vgpus], later: PossibleSeatings) -> Refusal | None:
    needs, names = needs_of(carrying.values()), " ".join(carrying)
    if later.complete and all(can_be_started(loads, needs) for loads in later.ways):
        return None
    if not any(fits(loads, needs) for loads in later.ways):
        return Refusal(
            host.name,
            f"{wish} cannot begin on {host.name}: no card will have room for {names}.",
            details=tuple(_nowhere(host, carrying)),
            hint="Take a worker off the shift, move it to another host, or give it a smaller profile.",
        )
    return Refusal(
        host.name,
        f"{wish} may not end well on {host.name}: there is room for {names}, but vCenter chooses the cards, and may "
        "choose them so that one finds none.",
        details=tuple(_unknown(host, later)),
        hint="Give them profiles of one size, take a worker off the shift, or try again once the host says where its "
        "VMs sit.",
    )


def _unknown(host: Host, later: PossibleSeatings) -> Iterator[str]:
    """Yield the facts that are missing to be sure."""
    if not later.exact:
        yield f"{host.name} does not say yet on which card each of its VMs sits"
    modes = {load.kind.mode for loads in later.ways for load in loads if load.held}
    for mode in sorted(modes - {CardMode.SAME_SIZE}):
        yield f"on a card in {MODE_WORDS[mode]} mode nobody tells at which place a vGPU sits: the worst is assumed"


def _memory(wish: str, host: Host, names: list[str], short: Shortage) -> Refusal:
    return Refusal(
        host.name,
        f"{wish} cannot begin on {host.name}: its memory will not hold {' '.join(names)}. They need "
        f"{in_gb(short.needed)}; of {in_gb(host.memory_mib)}, {in_gb(short.free)} will be free.",
        details=(
            f"workers that stay keep {in_gb(short.of_workers)}, other VMs have reserved {in_gb(short.of_strangers)}",
        ),
        hint="Take a worker off the shift, move one to another host, or give it less memory: all memory of a VM with "
        "a vGPU is reserved.",
    )


def _nowhere(host: Host, carrying: Mapping[str, Vgpus]) -> Iterator[str]:
    """Yield the types that no card of this host could hold even if it were empty."""
    empty = tuple(Load(kind_of(card)) for card in host.cards)
    for name, vgpus in carrying.items():
        for vgpu in dict.fromkeys(vgpus):
            if empty and not may_choose(empty, vgpu):
                kinds = dict.fromkeys(f"{card.model} ({MODE_WORDS[card.mode]})" for card in host.cards)
                yield f"{name} needs {vgpu}, which none of these can hold: {', '.join(kinds)}"


def _holders(fleet: Fleet, host: Host, leaving: set[str]) -> Iterator[str]:
    for card in host.cards:
        for name in card.holds:
            if name in leaving or not _runs(fleet, name):
                continue
            yield f"{card.pci_id} keeps {name} ({' '.join(fleet.vgpus_of(name)) or 'unknown vGPU'})"
    if not host.cards:
        yield f"{host.name} has no card that is shared for vGPUs"


def _runs(fleet: Fleet, name: str) -> bool:
    if name in fleet.workers:
        return fleet.worker(name).on
    return name not in fleet.strangers or fleet.strangers[name].on

"""vGPU types that no host offers, or that a worker's host has no card for."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.basics.nearest import nearest
from vgpuctl.model.fleet import Worker
from vgpuctl.model.hosts import Card, Host
from vgpuctl.planning.cards.card_rules import Load, assumption, kind_of
from vgpuctl.planning.checks.card_room import MODE_WORDS
from vgpuctl.reporting.profiles_check.finding import Compared, Finding, Severity, place

SHOWN = 6


def of_types(compared: Compared) -> Iterator[Finding]:
    unknown = set(_not_offered(compared))
    for vgpu in sorted(unknown):
        yield from _unknown(compared, vgpu)
    yield from _contradictions(compared)
    for worker in compared.fleet.workers.values():
        if host := compared.fleet.hosts.get(worker.host):
            for vgpu in dict.fromkeys(compared.wanted(worker)):
                if vgpu not in unknown:
                    yield from _on_its_host(compared, worker, host, vgpu)


def holds(host: Host, vgpu: str) -> bool:
    """True if the host offers this type and has a card for it, were the card empty."""
    return (not host.offers or vgpu in host.offers) and any(_takes(card, vgpu) for card in host.cards)


def _takes(card: Card, vgpu: str) -> bool:
    return Load(kind_of(card)).may_take(vgpu)


def _not_offered(compared: Compared) -> Iterator[str]:
    offered = _offered(compared)
    wanted = (vgpu for profile in compared.catalogue.profiles.values() for vgpu in profile.vgpus)
    return (vgpu for vgpu in wanted if offered and vgpu not in offered)


def _offered(compared: Compared) -> list[str]:
    return sorted({vgpu for host in compared.fleet.hosts.values() for vgpu in host.offers})


def _card_in(vgpu: str) -> str:
    """Return what the type's name says about the card. The prefix is `grid_` on some hosts and `nvidia_` on others."""
    stem = vgpu.rpartition("-")[0]
    return stem.partition("_")[2] or stem


def _unknown(compared: Compared, vgpu: str) -> Iterator[Finding]:
    offered = _offered(compared)
    card = _card_in(vgpu)
    like = [each for each in offered if card and _card_in(each) == card] or offered
    more = " …" if len(like) > SHOWN else ""
    for profile in compared.catalogue.profiles.values():
        if vgpu in profile.vgpus:
            yield Finding(
                severity=Severity.ERROR,
                kind="unknown-type",
                where=profile.where,
                about=f"profile {profile.name}",
                what=f"no host offers {vgpu}{nearest(vgpu, like)}",
                hint=f"Offered are: {' '.join(like[:SHOWN])}{more}",
            )


def _contradictions(compared: Compared) -> Iterator[Finding]:
    """Yield types about which the file and a host disagree. The file counts."""
    by_host = {facts.vgpu: facts for facts in compared.host_facts}
    for profile in compared.catalogue.profiles.values():
        mine = profile.type_facts
        if mine is None or (host := by_host.get(mine.vgpu)) is None:
            continue
        # What the file says counts before what a host or the name says (architecture.md, Placement).
        said = ((f"{mine.gib} GB", f"{host.gib} GB"), (f"class {mine.series.upper()}", f"class {host.series.upper()}"))
        asked = ((mine.gib, host.gib), (mine.series, host.series))
        for (ours, its), (in_file, on_host) in zip(said, asked, strict=True):
            if in_file and on_host and in_file != on_host:
                yield Finding(
                    severity=Severity.WARNING,
                    kind="contradicts-host",
                    where=profile.where,
                    about=f"profile {profile.name}",
                    what=f"the file says {ours} of {mine.vgpu}, its host {its}; the file is obeyed",
                    hint="Take frame and class out of the profile, unless you know better than the host.",
                )


def _on_its_host(compared: Compared, worker: Worker, host: Host, vgpu: str) -> Iterator[Finding]:
    if holds(host, vgpu):
        # NVIDIA's counts follow no formula, so a count that is in no table is only assumed.
        for assumed in dict.fromkeys(filter(None, (assumption(card, vgpu) for card in host.cards))):
            yield Finding(
                severity=Severity.WARNING,
                kind="assumed",
                where=compared.catalogue.profile(worker.profile).where,
                about=f"profile {worker.profile}",
                what=assumed,
                hint="Compare it with NVIDIA's documents: how many start on a card is counted with this.",
            )
        return
    unshared = [card for card in host.unshared if _takes(card, vgpu)]
    yield _closed(worker, host, vgpu, unshared[0]) if unshared else _elsewhere(compared, worker, host, vgpu)


def _closed(worker: Worker, host: Host, vgpu: str, card: Card) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        kind="not-shared",
        where=place(worker),
        workers=(worker.name,),
        what=f"no card of {host.name} can hold {vgpu} while {card.model} {card.pci_id} is not sharedDirect",
        hint="Set the card to Shared Direct in vCenter (host, Configure, Graphics), then restart the host.",
    )


def _elsewhere(compared: Compared, worker: Worker, host: Host, vgpu: str) -> Finding:
    cards = ", ".join(dict.fromkeys(f"{card.model} ({MODE_WORDS[card.mode]})" for card in host.cards)) or "none"
    others = [other.name for other in compared.fleet.hosts.values() if holds(other, vgpu)]
    move = f"Move the VM to {' or '.join(others[:SHOWN])}, or give" if others else "Give"
    return Finding(
        severity=Severity.ERROR,
        kind="wrong-card",
        where=place(worker),
        workers=(worker.name,),
        what=f"no card of {host.name} can hold {vgpu}; its cards: {cards}",
        hint=f"{move} it a profile that its host's cards know.",
    )

"""The picture of the whole estate, for people and as a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vgpuctl.cli.words import count, local_time, seconds
from vgpuctl.model.fleet import Card, Fleet, Pod, Power, Worker
from vgpuctl.model.profiles import Catalogue, frame_gib
from vgpuctl.planning.cards import card_gib
from vgpuctl.planning.drain import leaving_pods
from vgpuctl.planning.standing import Standing

if TYPE_CHECKING:
    from rich.table import Table

    from vgpuctl.cli.paper import Paper

BAR = 16
POWER_WORDS = {Power.ON: "on", Power.OFF: "off", Power.SUSPENDED: "suspended"}


def show_estate(out: Paper, fleet: Fleet, catalogue: Catalogue, standings: list[Standing]) -> None:
    for standing in standings:
        out.say(*_headline(standing))
        out.print()
    out.print(_cards(fleet))
    out.print()
    out.print(_workers(fleet, catalogue, standings))
    lines = [*_waiting(fleet, catalogue, standings), *_troubles(fleet, standings)]
    if lines:
        out.print()
    for line in lines:
        out.print(line)


def _headline(standing: Standing) -> tuple[str, str]:
    """The shift, and what there is to say of it."""
    name, due = standing.timetable.name, standing.due
    following = ""
    if standing.next_start and standing.next_shift:
        wait = seconds(60 * round((standing.next_start - standing.now).total_seconds() / 60))
        following = f" · next: {standing.next_shift} at {_moment(standing.next_start, standing.now)} (in {wait})"
    since = f" since {_moment(standing.since, standing.now)}" if standing.since else ""
    if standing.current == due:
        return due or "no shift", f"{since}{following} · timetable {name}".lstrip()
    return standing.current or "between shifts", f"· the timetable {name} says {due}{since}{following}"


def _moment(moment: datetime, now: datetime) -> str:
    return moment.strftime("%H:%M" if abs((moment - now).total_seconds()) < 86400 else "%a %H:%M")


def _plain_table(*columns: str) -> Table:
    """Rich loads here, so that a document does without it."""
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ignore")
    return table


def _cards(fleet: Fleet) -> Table:
    from rich.text import Text  # noqa: PLC0415

    table = _plain_table("HOST", "CARD", "FRAME")
    table.add_column("HOLDS", overflow="fold")
    for host in fleet.hosts.values():
        for card in host.cards:
            used, total = _used_gib(fleet, card), card_gib(card)
            filled = round(BAR * min(1.0, used / total)) if total else 0
            bar = Text("█" * filled, style="green") + Text("░" * (BAR - filled), style="dim")
            frame = Text.assemble(bar, f"  {used}/{total} GB")
            table.add_row(
                host.name, f"{card.model} {card.pci_id.removesuffix('.0')}", frame, " ".join(sorted(card.holds)) or "–"
            )
    return table


def _used_gib(fleet: Fleet, card: Card) -> int:
    return sum(frame_gib(vgpu) or 0 for name in card.holds for vgpu in fleet.vgpus_of(name))


def _workers(fleet: Fleet, catalogue: Catalogue, standings: list[Standing]) -> Table:
    from rich.text import Text  # noqa: PLC0415

    table = _plain_table("WORKER", "VM", "PROFILE", "NODE", "PODS", "")
    for worker in fleet.workers.values():
        task = worker.busy_with
        power = POWER_WORDS[worker.power] + (f" ({task.kind})" if task else "")
        profile = catalogue.carried(worker.vgpus) or " ".join(worker.vgpus) or "–"
        pods = str(len(leaving_pods(worker.node))) if worker.on else "–"
        table.add_row(worker.name, power, profile, node_word(worker), pods, Text(_note(worker, standings), style="dim"))
    return table


def node_word(worker: Worker) -> str:
    node = worker.node
    if node is None:
        return "none"
    if not worker.on:
        return "asleep" if node.record else "down"
    if not node.ready:
        return "not ready"
    return "cordoned" if node.unschedulable else "ready"


def _note(worker: Worker, standings: list[Standing]) -> str:
    record = worker.node.record if worker.node else None
    if worker.on:
        cordoned = worker.node is not None and worker.node.unschedulable
        return "cordoned, not by us" if cordoned and (record is None or not record.cordoned) else ""
    wakes = min((start for s in standings if (start := s.wakes_at(worker))), default=None)
    since = f"since {local_time(record.since)}" if record and local_time(record.since) else ""
    return ", ".join(filter(None, [since, f"wakes at {wakes.strftime('%H:%M')}" if wakes else ""]))


def _waiting(fleet: Fleet, catalogue: Catalogue, standings: list[Standing]) -> Iterator[str]:
    """Pods that wait for a profile: people ask why they are Pending."""
    by_profile: dict[str, list[Pod]] = {}
    for pod in fleet.waiting:
        profile = pod.selector.get(catalogue.label, "")
        if profile in catalogue.profiles:
            by_profile.setdefault(profile, []).append(pod)
    for profile, pods in by_profile.items():
        names = ", ".join(str(pod) for pod in pods[:2]) + (", …" if len(pods) > 2 else "")
        verb = "waits" if len(pods) == 1 else "wait"
        yield f"{count(len(pods), 'pod')} {verb} for {profile}: {names}{_when(profile, fleet, standings)}"


def _when(profile: str, fleet: Fleet, standings: list[Standing]) -> str:
    some = next((worker for worker in fleet.workers.values() if worker.profile == profile), None)
    starts = [standing.wakes_at(some) for standing in standings if some]
    start = min((start for start in starts if start), default=None)
    return f" → at {start.strftime('%H:%M')}" if start else ""


def _troubles(fleet: Fleet, standings: Iterable[Standing]) -> Iterator[str]:
    troubles = [trouble for standing in standings for trouble in standing.out_of_step]
    if troubles:
        yield f"{count(len(troubles), 'thing')} {'is' if len(troubles) == 1 else 'are'} out of step:"
        yield from (f"  {trouble}" for trouble in troubles)


def status_document(fleet: Fleet, catalogue: Catalogue, standings: list[Standing]) -> dict[str, Any]:
    return {
        "apiVersion": "vgpuctl.io/v1",
        "kind": "Status",
        "timetables": [_standing_document(standing) for standing in standings],
        "hosts": [
            {"name": host.name, "cards": [_card_document(fleet, card) for card in host.cards]}
            for host in fleet.hosts.values()
        ],
        "workers": [_worker_document(worker, catalogue) for worker in fleet.workers.values()],
        "waiting": [
            {"namespace": pod.namespace, "name": pod.name, "profile": profile}
            for pod in fleet.waiting
            if (profile := pod.selector.get(catalogue.label))
        ],
        "missing": list(fleet.missing),
    }


def _standing_document(standing: Standing) -> dict[str, Any]:
    return {
        "name": standing.timetable.name,
        "current": standing.current,
        "due": standing.due,
        "since": standing.since.isoformat() if standing.since else None,
        "next": standing.next_shift,
        "nextStart": standing.next_start.isoformat() if standing.next_start else None,
        "outOfStep": list(standing.out_of_step),
    }


def _card_document(fleet: Fleet, card: Card) -> dict[str, Any]:
    return {
        "pciId": card.pci_id,
        "model": card.model,
        "frameMiB": card.frame_mib,
        "usedMiB": _used_gib(fleet, card) * 1024,
        "holds": list(card.holds),
    }


def _worker_document(worker: Worker, catalogue: Catalogue) -> dict[str, Any]:
    node = worker.node
    return {
        "name": worker.name,
        "host": worker.host,
        "power": worker.power.value,
        "vgpus": list(worker.vgpus),
        "profile": catalogue.carried(worker.vgpus),
        "wantedProfile": worker.profile,
        "node": node
        and {
            "name": node.name,
            "state": node_word(worker),
            "ready": node.ready,
            "unschedulable": node.unschedulable,
            "label": node.labels.get(catalogue.label),
            "gpus": node.gpus,
            "pods": [{"namespace": pod.namespace, "name": pod.name} for pod in leaving_pods(node)],
            "record": node.record and {"for": node.record.wish, "state": node.record.state, "since": node.record.since},
        },
    }

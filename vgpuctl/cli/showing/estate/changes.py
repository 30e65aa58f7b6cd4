"""The changes between two looks, as lines for a log."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.cli.sanitize import one_line
from vgpuctl.cli.showing.estate.remarks import host_remarks, power_word
from vgpuctl.cli.times import ends_by
from vgpuctl.planning.pods.drain import leaving_pods
from vgpuctl.reporting.situation import JudgedWorker, Situation, node_word

SERVERS = ("vCenter", "Kubernetes")

#: For each name, the aspects of it that a line may report.
Facts = dict[str, dict[str, str]]


def facts(situation: Situation) -> Facts:
    found: Facts = {name: {"": _hearing(situation, name)} for name in SERVERS}
    found |= {each.timetable.name: {"shift": each.current or "none"} for each in situation.states}
    found |= _orders(situation)
    found |= {host.name: {"": host_remarks(host) or "well"} for host in situation.hosts}
    found |= {judged.worker.name: _of_worker(situation, judged) for judged in situation.workers}
    found |= {str(each.pod): {"waits for": " or ".join(each.profiles)} for each in situation.waiting}
    return found


def _orders(situation: Situation) -> Facts:
    now = situation.now
    overrides = {each.timetable.name: each.override for each in situation.states if each.override}
    found: Facts = {f"override on {name}:": {"": f"{o.shift} {ends_by(o, now)}"} for name, o in overrides.items()}
    if situation.pause:
        found["pause"] = {"": ends_by(situation.pause, now)}
    found |= {f"maintenance of {order.host}": {"": ends_by(order, now)} for order in situation.maintenance}
    return found | {f"{each.host} parked:": {"": f"{each.shift}, {each.why}"} for each in situation.parked}


def _hearing(situation: Situation, server: str) -> str:
    if server not in situation.stale:
        return "heard"
    why = situation.fleet.silence.get(server)
    return f"silent ({why})" if why else "silent"


def _of_worker(situation: Situation, judged: JudgedWorker) -> dict[str, str]:
    worker, node = judged.worker, judged.worker.node
    label = node.labels.get(situation.catalogue.label) if node else None
    return {
        "VM": power_word(worker),
        "profile": situation.catalogue.carried(worker.vgpus) or " ".join(worker.vgpus) or "none",
        "node": node_word(judged),
        "label": label or "none",
        "pods": str(len(leaving_pods(node))),
        "host": worker.host,
        "question": worker.question or "none",
        "hold": worker.hold.phrase("").removeprefix("held ") if worker.hold else "none",
    }


def differences(before: Facts, after: Facts) -> Iterator[str]:
    """Yield a line for each name that changed: `worker-1 VM on → suspending, node ready → cordoned`."""
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            known = old or new or {}
            told = ", ".join(f"{aspect} {value}".strip() for aspect, value in known.items() if value != "none")
            yield one_line(f"{name} {'gone: ' if new is None else ''}{told}")
        elif changed := [f"{aspect} {old[aspect]} → {value}" for aspect, value in new.items() if old[aspect] != value]:
            yield one_line(f"{name} {', '.join(changed).strip()}")

"""A plan as a person reads it, and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgpuctl.cli.paper import Paper
from vgpuctl.cli.words import count
from vgpuctl.model.plan import Refusal, Step
from vgpuctl.operations import Prospect
from vgpuctl.planning.drain import pods_to_move
from vgpuctl.planning.steps import Cordon, Drain, Label, MarkAsleep, PowerOn, Suspend, Uncordon
from vgpuctl.planning.steps.labels import wrong as wrong_labels

PODS_SHOWN = 3


def show_plan(out: Paper, prospect: Prospect) -> None:
    """Host by host, worker by worker, in the order of the ladder."""
    if prospect.plan:
        out.print(_headline(prospect), style="bold")
    for host in dict.fromkeys(prospect.fleet.worker(step.worker).host for step in prospect.plan):
        out.print(f"\n{host}")
        workers = dict.fromkeys(s.worker for s in prospect.plan if prospect.fleet.worker(s.worker).host == host)
        width = max(len(name) for name in workers)
        for worker in workers:
            out.print(f"  {worker:<{width}}  {_line(prospect, worker)}")
    for name in prospect.fleet.missing:
        out.print(f"{name} is in profiles.yaml, but no VM of vCenter has this name.", style="yellow")
    for refusal in prospect.refusals:
        show_refusal(out, refusal)


def show_refusal(out: Paper, refusal: Refusal) -> None:
    out.say("Refused:", refusal.message, "bold red")
    for detail in refusal.details:
        out.print(f"  {detail}")
    out.say("Hint:", refusal.hint)


def _headline(prospect: Prospect) -> str:
    fleet, steps = prospect.fleet, prospect.plan
    sleepers = sum(isinstance(step, Suspend) for step in steps)
    wakers = sum(isinstance(step, PowerOn) for step in steps)
    pods = sum(len(pods_to_move(fleet.worker(step.worker))) for step in steps if isinstance(step, Drain))
    labels = sum(isinstance(step, Label) for step in steps)
    attached = sum(step.name.startswith("Attach/") for step in steps)
    parts = [
        f"{count(attached, 'worker')} {'gets' if attached == 1 else 'get'} vGPUs" if attached else "",
        f"{count(sleepers, 'worker')} {'goes' if sleepers == 1 else 'go'} to sleep" if sleepers else "",
        f"{count(wakers, 'worker')} {'wakes' if wakers == 1 else 'wake'}" if wakers else "",
        f"{count(pods, 'pod')} {'leaves' if pods == 1 else 'leave'}" if pods else "",
        f"{count(labels, 'label')} {'is' if labels == 1 else 'are'} set" if labels else "",
    ]
    told = "; ".join(part for part in parts if part) or "only marks on nodes change"
    return f"{prospect.wish.name}: {told}"


def _line(prospect: Prospect, worker: str) -> str:
    shown = [step for step in prospect.plan.of(worker) if not isinstance(step, Cordon | MarkAsleep)]
    words = [_words(prospect, step) for step in shown or prospect.plan.of(worker)]
    return " → ".join(words)


def _words(prospect: Prospect, step: Step) -> str:
    match step:
        case Drain():
            pods = pods_to_move(prospect.fleet.worker(step.worker))
            names = ", ".join(str(pod) for pod in pods[:PODS_SHOWN]) + (", …" if len(pods) > PODS_SHOWN else "")
            return f"drain {count(len(pods), 'pod')} ({names})"
        case PowerOn():
            return f"{_needs(prospect, step)}{step.describe()}"
        case Uncordon(labels=labels):
            profile = dict(labels).get(prospect.wish.catalogue.label)
            return f"label {profile} → uncordon" if profile else "uncordon"
        case Label(labels=labels):
            node = prospect.fleet.worker(step.worker).node
            wrong = wrong_labels(node, labels) if node else {}
            return ", ".join(f"{key}={value}" if value else f"remove {key}" for key, value in wrong.items())
        case _:
            return step.describe()


def _needs(prospect: Prospect, step: Step) -> str:
    """Whose place it takes."""
    others = [n.split("/") for n in sorted(prospect.plan.needs[step.name]) if n.split("/")[1] != step.worker]
    leaving = [worker for kind, worker in others if kind in {"Suspend", "ShutDown"}]
    return f"after {', '.join(leaving)}: " if leaving else ""


def plan_document(prospect: Prospect) -> dict[str, Any]:
    return {
        "apiVersion": "vgpuctl.io/v1",
        "kind": "Plan",
        "wish": prospect.wish.name,
        "steps": list(_steps(prospect)),
        "refusals": [
            {"host": r.host, "message": r.message, "details": list(r.details), "hint": r.hint}
            for r in prospect.refusals
        ],
        "missing": list(prospect.fleet.missing),
    }


def _steps(prospect: Prospect) -> Iterator[dict[str, Any]]:
    for step in prospect.plan:
        yield {
            "name": step.name,
            "worker": step.worker,
            "host": prospect.fleet.worker(step.worker).host,
            "what": step.describe(),
            "needs": sorted(prospect.plan.needs[step.name]),
        }

"""A plan for people, and as a document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from vgpuctl.basics.durations import format_duration
from vgpuctl.basics.phrases import count
from vgpuctl.cli.safe_console import SafeConsole
from vgpuctl.cli.sanitize import one_line
from vgpuctl.model.conduct import OnStuck
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Step
from vgpuctl.model.pods import Pod
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.workloads import Workload
from vgpuctl.operations import Preview
from vgpuctl.planning.steps import (
    Attach,
    Cordon,
    Drain,
    DrainFirst,
    Label,
    MarkAsleep,
    PowerOn,
    ScaleDown,
    ScaleUp,
    Shield,
    ShutDown,
    Suspend,
    Uncordon,
    Unshield,
    WaitDetached,
    kind_named,
)
from vgpuctl.planning.steps.labels import wrong
from vgpuctl.reporting.codes import more_about
from vgpuctl.reporting.forecast import Forecast, StepTimes, forecast

PODS_SHOWN = 3


def show_plan(out: SafeConsole, preview: Preview) -> None:
    """Show the plan by host and worker, in the order of the ladder."""
    if preview.plan:
        out.print_text(headline(preview), style="bold")
    by_host: dict[str, list[str]] = {}
    for worker in dict.fromkeys(step.subject for step in preview.plan):
        by_host.setdefault(place_of(preview.fleet, worker), []).append(worker)
    for place, workers in by_host.items():
        out.print(f"\n{one_line(place)}")
        width = max(len(name) for name in workers)
        for worker in workers:
            out.print(
                _hanging(
                    f"  {one_line(worker):<{width}}  ", _line(preview, worker), out.width if out.is_terminal else 0
                )
            )
    for name in preview.fleet.missing:
        out.print_text(f"{name} is in profiles.yaml, but vCenter has no VM of this name.", style="yellow")
    show_remarks(out, preview)
    for refusal in preview.refusals:
        show_refusal(out, refusal)
    if preview.refusals:
        out.print_text(more_about(refusal.code for refusal in preview.refusals))


def place_of(fleet: Fleet, name: str) -> str:
    """Return the heading under which a worker or a workload is shown."""
    return fleet.host_of(name) or ("Workloads" if name in fleet.workloads else "No workers any more")


def show_remarks(out: SafeConsole, preview: Preview) -> None:
    for remark in preview.remarks:
        out.print_labelled("Note:", remark.message, "yellow")


def _hanging(head: str, text: str, columns: int) -> str:
    """Return the text after its head: aligned lines on a terminal, one line elsewhere. `columns` 0: no limit."""
    room = max(columns - len(head), 20) if columns else len(text) + 1
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
    return head + f"\n{' ' * len(head)}".join(lines)


def show_refusal(out: SafeConsole, refusal: Refusal) -> None:
    out.print_labelled("Refused:", refusal.message, "bold red")
    for detail in refusal.details:
        out.print_text(f"  {one_line(detail)}")
    out.print_labelled("Hint:", refusal.hint)


def headline(preview: Preview) -> str:
    """Return the plan in one line: what it does to how many, and how long it takes."""
    steps, wish = preview.plan, preview.wish
    changed = {step.worker for step in steps if isinstance(step, Attach)}
    out = {step.worker for step in steps if isinstance(step, ShutDown | Suspend)}
    started = {step.worker for step in steps if isinstance(step, PowerOn)}
    scaled = {step.subject for step in steps if isinstance(step, ScaleDown)}
    restored = {step.subject for step in steps if isinstance(step, ScaleUp)}
    stopped, sleepers, woken = out & started, out - started, started - out
    pods = sum(len(_pods(preview, step)) for step in steps if isinstance(step, Drain))
    labelled = {step.worker for step in steps if isinstance(step, Label)}
    parts = [
        _told(len(changed), "worker", "gets other vGPUs", "get other vGPUs"),
        _told(len(stopped), "worker", "is out meanwhile", "are out meanwhile")
        + (f", {wish.max_unavailable} at once" if wish.max_unavailable and len(stopped) > wish.max_unavailable else ""),
        _told(len(sleepers), "worker", "goes to sleep", "go to sleep"),
        _told(len(woken), "worker", "wakes", "wake"),
        _told(len(scaled), "workload", "is scaled to zero", "are scaled to zero"),
        _told(len(restored), "workload", "gets its size back", "get their size back"),
        _told(pods, "pod", "leaves", "leave"),
        _told(len(labelled), "node", "is labelled", "are labelled") if not (changed or sleepers or woken) else "",
    ]
    told = "; ".join(part for part in parts if part) or "only marks change"
    whole = forecast(steps, preview.fleet, preview.earlier).length_s
    return f"{wish.name}: {told}" + (f"; about {format_duration(whole)} ({_known_from(preview)})" if whole > 1 else "")


def _known_from(preview: Preview) -> str:
    """Return what the duration is based on: `12 earlier switches`, and `estimated` if they do not cover every step."""
    number = preview.earlier.count(preview.plan)
    times = StepTimes(preview.fleet, preview.earlier)
    guessed = not all(times.knows(step) for step in preview.plan if step.lasts)
    seen = f"{number} earlier switch{'' if number == 1 else 'es'}" if number else ""
    return ", ".join(filter(None, ["estimated" if guessed or not seen else "", seen]))


def _told(number: int, noun: str, one: str, many: str) -> str:
    return f"{count(number, noun)} {one if number == 1 else many}" if number else ""


def _line(preview: Preview, worker: str) -> str:
    marks = Cordon | MarkAsleep | Shield | Unshield
    shown = [step for step in preview.plan.of(worker) if not isinstance(step, marks)]
    words = [_words(preview, step) for step in shown or preview.plan.of(worker)]
    return f"{_after(preview, worker)}{' → '.join(words)}"


def _words(preview: Preview, step: Step) -> str:
    match step:
        case Drain():
            pods = _pods(preview, step)
            names = ", ".join(str(pod) for pod in pods[:PODS_SHOWN]) + (", …" if len(pods) > PODS_SHOWN else "")
            forced = f", by force after {format_duration(step.within_s)}" if step.on_stuck is OnStuck.FORCE else ""
            what = step.describe() if isinstance(step, DrainFirst) else f"drain {count(len(pods), 'pod')}"
            return f"{what} ({names}){forced}"
        case ScaleDown() | ScaleUp():
            return _sizes(preview.fleet.workloads[step.subject], step)
        case Attach():
            return f"{step.describe()} ({why(preview, step)})"
        case Uncordon(labels=labels):
            profile = dict(labels).get(preview.wish.catalogue.label)
            return f"label {profile} → uncordon" if profile else "uncordon"
        case Label(labels=labels):
            node = preview.fleet.worker(step.worker).node
            changes = wrong(node, labels) if node else {}
            return ", ".join(f"{key}={value}" if value else f"{key} off" for key, value in changes.items())
        case _:
            return step.describe()


def _pods(preview: Preview, step: Drain) -> list[Pod]:
    """Return the pods that this step moves. The pods that leave first are not among the others."""
    before = frozenset[str]() if isinstance(step, DrainFirst) else preview.wish.drain_first
    return [pod for pod in step.pods_of(preview.fleet.worker(step.worker)) if pod.uid not in before]


def _sizes(workload: Workload, step: ScaleDown | ScaleUp) -> str:
    if isinstance(step, ScaleDown):
        return f"{step.describe()} (from {workload.replicas})"
    size = workload.scaled.replicas if workload.scaled else None
    return (
        f"{step.describe()} (to {size})"
        if workload.sleeps
        else "take our mark off (another program or person has scaled it)"
    )


def _after(preview: Preview, worker: str) -> str:
    """Return the workers that must leave, or be back, before this one's turn."""
    others = {
        needed.subject: kind_named(needed.kind)
        for step in preview.plan.of(worker)
        if isinstance(step, PowerOn | Cordon)
        for needed in sorted(preview.plan.needs[step.id])
    }
    leaving = [name for name, kind in others.items() if name != worker and (kind.takes_down or kind is Uncordon)]
    return f"after {', '.join(leaving)}: " if leaving else ""


def why(preview: Preview, step: Step) -> str:
    """Return what makes this step necessary."""
    worker = preview.fleet.find(step.subject)
    if worker is None:
        return f"at zero in {preview.wish.name}" if isinstance(step, ScaleDown) else f"it runs in {preview.wish.name}"
    match step:
        case Attach(vgpus=vgpus):
            if sorted(worker.vgpus) != sorted(vgpus):
                return f"it carries {' '.join(worker.vgpus) or 'none'}"
            return "its memory is not fully reserved" if not worker.memory_locked else "its address space is too small"
        case Cordon() | Drain() | WaitDetached() | Shield() | ShutDown() | Suspend():
            asleep = preview.wish.workers[step.worker].awake is False
            return f"asleep in {preview.wish.name}" if asleep else "its vGPUs can be changed only while it is off"
        case Label():
            return "the node's labels are not true"
    return f"awake in {preview.wish.name}" if worker.vm else "no worker any more"


def plan_document(preview: Preview) -> dict[str, Any]:
    ahead = forecast(preview.plan, preview.fleet, preview.earlier)
    return {
        "apiVersion": "vgpuctl.io/v1",
        "kind": "Plan",
        "wish": preview.wish.name,
        "expectedSeconds": round(ahead.length_s, 1),
        "earlierSwitches": preview.earlier.count(preview.plan),
        "steps": list(_steps(preview, ahead)),
        "refusals": [
            {"host": r.host, "code": r.code, "message": r.message, "details": list(r.details), "hint": r.hint}
            for r in preview.refusals
        ],
        "remarks": [{"host": remark.host, "message": remark.message} for remark in preview.remarks],
        "missing": list(preview.fleet.missing),
    }


def _steps(preview: Preview, ahead: Forecast) -> Iterator[dict[str, Any]]:
    for step in preview.plan:
        yield {
            "name": step.id,
            "worker": step.subject if preview.fleet.find(step.subject) else "",
            "workload": step.subject if step.subject in preview.fleet.workloads else "",
            "host": preview.fleet.host_of(step.subject),
            "what": step.describe(),
            "why": why(preview, step),
            "expectedSeconds": round(ahead.takes_s[step.id], 1),
            "needs": sorted(preview.plan.needs[step.id]),
        }

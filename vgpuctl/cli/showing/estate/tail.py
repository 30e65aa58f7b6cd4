"""The lines below the tables: waiting pods, the quota they hold, and what is out of step."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from vgpuctl.basics.moments import moment
from vgpuctl.basics.phrases import count, folded_names
from vgpuctl.cli.sanitize import one_line
from vgpuctl.cli.showing.estate.layout import cell, paragraph
from vgpuctl.cli.showing.estate.remarks import outlook
from vgpuctl.model.pods import Pod
from vgpuctl.model.workloads import Workload
from vgpuctl.reporting.deviations import Deviation
from vgpuctl.reporting.situation import Situation

PODS_SHOWN = 2


def waiting_lines(situation: Situation, width: int) -> Iterator[Text]:
    """Yield a line for all pods with the same outlook."""
    alike: dict[tuple[str, str], list[Pod]] = {}
    for each in situation.waiting:
        key = " or ".join(each.profiles), outlook(each, situation.now)
        alike.setdefault(key, []).append(each.pod)
    for (profiles, when), pods in alike.items():
        names = ", ".join(str(pod) for pod in pods[:PODS_SHOWN]) + (", …" if len(pods) > PODS_SHOWN else "")
        verb = "waits" if len(pods) == 1 else "wait"
        yield from paragraph(one_line(f"{count(len(pods), 'pod')} {verb}: {names} for {profiles}{when}"), width)


def resting_lines(situation: Situation, width: int) -> Iterator[Text]:
    """Yield a line per outlook: `1 workload is at zero: inference/deployment/gateway (3 before) → day, 08:00`."""
    alike: dict[str, list[Workload]] = {}
    for workload, waking in situation.resting:
        start = moment(waking.start, situation.now) if waking else ""
        when = f" → {waking.shift}, {f'due since {start}' if waking.due else start}" if waking else ""
        alike.setdefault(when, []).append(workload)
    for when, workloads in alike.items():
        names = ", ".join(_before(workload) for workload in workloads[:PODS_SHOWN])
        more = ", …" if len(workloads) > PODS_SHOWN else ""
        verb = "is" if len(workloads) == 1 else "are"
        yield from paragraph(
            one_line(f"{count(len(workloads), 'workload')} {verb} at zero: {names}{more}{when}"), width
        )


def _before(workload: Workload) -> str:
    size = workload.scaled.replicas if workload.scaled else None
    return f"{workload.key} ({size} before)" if size is not None else workload.key


def quota_lines(situation: Situation, width: int) -> Iterator[Text]:
    """Yield quotas held by waiting pods, which count all day: people ask why other pods cannot start."""
    for quota in situation.quotas or ():
        if held := situation.held_by_waiting(quota):
            taken = f"{quota.used} of {quota.hard} GPUs of its quota {quota.name} are taken"
            yield from paragraph(one_line(f"{quota.namespace}: {taken}, {held} by pods that wait"), width)


def out_of_step(situation: Situation, width: int) -> Iterator[Text]:
    """Yield a line for similar deviations."""
    alike: dict[tuple[str, str, str], list[Deviation]] = {}
    for finding in situation.findings:
        alike.setdefault((finding.kind, finding.what, finding.remedy), []).append(finding)
    number = len(situation.findings)
    lines = [_told(findings, situation) for findings in alike.values()]
    if not lines:
        return
    verb = "is" if number == 1 else "are"
    head = f"{count(number, 'thing')} {verb} out of step:"
    if number == 1:
        first, *rest = paragraph(one_line(f"{head} {lines[0]}"), width)
        first.stylize("yellow", 0, len(head))
        yield from (first, *rest)
        return
    yield cell(head, "yellow")
    for line in lines:
        yield from paragraph("  " + one_line(line), width)


def _told(findings: list[Deviation], situation: Situation) -> str:
    first = findings[0]
    since = moment(first.since, situation.now) if len(findings) == 1 and first.since else ""
    told = f"{folded_names(finding.name for finding in findings)}: {first.what}"
    return f"{told}{f', since {since}' if since else ''}{f' → {first.remedy}' if first.remedy else ''}"

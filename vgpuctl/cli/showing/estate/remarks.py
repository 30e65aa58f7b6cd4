"""Workers, hosts and waiting pods in a few words each: the state, and its reason."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from vgpuctl.basics.durations import format_duration
from vgpuctl.basics.moments import moment
from vgpuctl.basics.phrases import count
from vgpuctl.model.fleet import Node, Worker
from vgpuctl.model.hosts import Host
from vgpuctl.reporting.deviations import POWER_WORDS, cordoned_by, cordoned_since
from vgpuctl.reporting.pending_pods import Waiting
from vgpuctl.reporting.situation import JudgedWorker, Situation
from vgpuctl.reporting.timetable_state import TimetableState, Waking

#: For vCenter's name of a task, what the VM is doing meanwhile.
#: vSphere: the last part of a task's descriptionId.
_DOING = {
    "suspend": "suspending",
    "powerOn": "starting",
    "powerOff": "stopping",
    "shutdownGuest": "shutting down",
    "reconfigure": "changing",
    "migrate": "moving",
    "relocate": "moving",
}


def power_word(worker: Worker) -> str:
    task = worker.busy_with
    return _DOING.get(task.kind, f"busy ({task.kind})") if task else POWER_WORDS[worker.power]


def note(judged: JudgedWorker, now: datetime, *, brief: bool = False) -> str:
    """Return a worker's remark. `brief`: without times, which differ, so that similar workers can share a line."""
    return ", ".join(filter(None, _notes(judged, now, brief)))


def _notes(judged: JudgedWorker, now: datetime, brief: bool) -> Iterator[str]:
    worker, node = judged.worker, judged.worker.node
    record = node.record if node else None
    yield from worker.doubts
    if worker.hold:
        yield worker.hold.phrase(moment(worker.hold.until, now) if worker.hold.until and not brief else "")
    if worker.question:
        yield "waits for an answer"
    if worker.on and node is not None and node.unschedulable:
        yield _cordon(node, "" if brief else moment(cordoned_since(node), now))
    elif not worker.on:
        due = judged.waking is not None and judged.waking.due
        since = moment(record.since, now) if record and not brief and not due else ""
        yield f"since {since}" if since else ""
        yield wakes(judged.waking, now) if judged.waking else ""
    if worker.managed_by:
        yield f"managed by {worker.managed_by}"


def _cordon(node: Node, since: str) -> str:
    record = node.record
    if record is not None and record.cordoned:
        return f"for {record.wish} since {since}" if since else f"for {record.wish}"
    by, comma, whose = cordoned_by(node).partition(",")
    return f"{by} at {since}{comma}{whose}" if since else f"{by}{comma}{whose}"


def wakes(waking: Waking, now: datetime) -> str:
    if waking.due:
        return f"{waking.shift} due since {moment(waking.start, now)}"
    return f"wakes at {moment(waking.start, now)}"


def host_remarks(host: Host) -> str:
    parts = (
        "" if host.connected else "not connected",
        "in maintenance" if host.maintenance else "",
        f"{count(len(host.unshared), 'card')} not set to sharedDirect" if host.unshared else "",
    )
    return ", ".join(filter(None, parts))


def outlook(each: Waiting, now: datetime) -> str:
    """Return when the pod's turn comes, as far as that is known."""
    waking = each.outlook.waking
    if each.outlook.awake:
        why = each.pod.demand and scheduler_words(each.pod.demand.unplaced)
        return f", which is awake; the scheduler says: {why}" if why else ", which is awake"
    if each.outlook.lacking:
        return ", which no worker that is awake carries yet"
    if waking is not None:
        start = moment(waking.start, now)
        return f" → {waking.shift}, {f'due since {start}' if waking.due else start}"
    return ", which no timetable wakes" if each.outlook.workers else ", which no worker has"


def scheduler_words(message: str) -> str:
    """Return what concerns matching nodes in `0/6 nodes are available: 1 Insufficient x, 5 node(s) didn't match … .`"""
    # kube-scheduler lists why no node fits. After `preemption:`, it lists why preemption does not help.
    told = message.partition("preemption:")[0].partition(" nodes are available: ")[2].strip(" .") or message.strip()
    parts = [part for part in told.split(", ") if "didn't match Pod's node affinity/selector" not in part]
    return ", ".join(parts) or "no node matches"


def headline(state: TimetableState, situation: Situation) -> tuple[str, str]:
    """Return the shift, and the remarks about it."""
    now, due, current = situation.now, state.due, state.current
    since = f" since {moment(state.since, now)}" if state.since else ""
    parts = [f"timetable {state.timetable.name}"]
    if state.next_start and state.next_shift:
        parts.insert(0, f"next: {state.next_shift} at {_start(state.next_start, now)}")
    if order := state.override:
        parts.insert(0, f"override by {order.who}{f' until {moment(order.until, now)}' if order.until else ''}")
    if not state.workers:
        parts.append("none of our workers is in it")
    if current == due:
        return due or "no shift", " · ".join([since.strip(), *parts] if since else ["", *parts]).strip()
    return current or "between shifts", " · ".join(["", f"due: {due}{since}", *parts]).strip()


def _start(start: datetime, now: datetime) -> str:
    """Return the start in local time, and in the timetable's time zone if that differs."""
    wait = _in_minutes((start - now).total_seconds())
    here, there = start.astimezone(), start
    other = f"{there.strftime('%H:%M')} {there.tzinfo}, " if here.utcoffset() != there.utcoffset() else ""
    return f"{moment(start, now)} ({other}in {wait})"


def _in_minutes(duration_s: float) -> str:
    return format_duration(60 * max(1, round(duration_s / 60)))

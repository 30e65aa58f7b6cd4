"""An entry of the journal in words for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from vgpuctl.basics.durations import format_duration
from vgpuctl.basics.phrases import count, folded_names
from vgpuctl.cli.showing.estate.layout import Row, cell, header_row
from vgpuctl.cli.showing.gantt import word
from vgpuctl.model.journal import CUT_SHORT, DONE, RUNNING, Entry, PastStep
from vgpuctl.model.wait import Reason
from vgpuctl.reporting.step_history import longest_way
from vgpuctl.reporting.waits import holds_up

#: Worth a remark: a wait of at least this part of the whole, and at least a moment.
PART, MOMENT_S = 0.1, 1.0
HOLDS_SHOWN = 3
COLOURS = {DONE: "green", RUNNING: "cyan"}


def overview(entries: Sequence[Entry], now: datetime) -> tuple[Row, list[Row]]:
    header = header_row("ID", "WHEN", "WHAT", "TOOK", "END", note="BY")
    rows = [
        Row(
            (
                cell(str(entry.number), "bold"),
                cell(f"{_local(entry):%a} {_local(entry).day} {_local(entry):%b %H:%M}"),
                cell(entry.wish + (f" on {entry.timetable}" if entry.timetable else "")),
                cell(_took(entry, now)),
                cell(entry.outcome, COLOURS.get(entry.outcome, "red")),
            ),
            note=cell(entry.by),
        )
        for entry in entries
    ]
    return header, rows


def headline(entry: Entry, now: datetime) -> str:
    """Return the headline: `night · Tue 17 Nov 20:00:03 · 2 min 8 s · done`."""
    when = _local(entry)
    return f"{entry.wish} · {when:%a} {when.day} {when:%b %H:%M:%S} · {_took(entry, now)} · {entry.outcome}"


def _took(entry: Entry, now: datetime) -> str:
    """Return the duration. A switch that was cut short has only the time it was observed."""
    if entry.outcome == RUNNING:
        return f"{format_duration(max((now - entry.began).total_seconds(), 0.0))} so far"
    return f"{'at least ' * (entry.outcome == CUT_SHORT)}{format_duration(entry.seconds)}"


def _local(entry: Entry) -> datetime:
    return entry.began.astimezone()


def remarks(entry: Entry) -> list[str]:
    """Return the longest way, what held it up, and what did not end well."""
    lines = [_way(entry), *_holds(entry)]
    lines += _ends(entry)
    if entry.left_out:
        lines.append(f"{count(entry.left_out, 'short step')} did not fit into the journal.")
    return [each for each in lines if each]


def _ends(entry: Entry) -> Iterator[str]:
    """Return a line for hosts that ended alike."""
    alike: dict[str, list[str]] = {}
    for host in entry.hosts:
        if host.end != DONE:
            code = f" ({host.code})" if host.code else ""
            alike.setdefault(f"{host.end}{f': {host.why}{code}' if host.why else '.'}", []).append(host.host)
    return (f"{folded_names(hosts)} {end}" for end, hosts in alike.items())


def _way(entry: Entry) -> str:
    way = longest_way(entry)
    shown = [step for step in way if _took_s(entry, step) >= 0.5] or way
    words, worker = [], ""
    for step in shown:
        words.append(word(step) if step.subject == worker else f"{step.subject} {word(step)}")
        worker = step.subject
    whole_s = sum(_took_s(entry, step) for step in way)
    return (
        f"Longest way: {' → '.join(words)} ({format_duration(whole_s)} of {format_duration(entry.seconds)})."
        if words
        else ""
    )


def _took_s(entry: Entry, step: PastStep) -> float:
    return step.took_s if step.ended_s is not None else entry.seconds - step.began_s


def _holds(entry: Entry) -> Iterator[str]:
    """Yield the waits on the longest way, and waits for budgets, because people can change those."""
    way = {step.id for step in longest_way(entry)}
    candidates = (step for step in entry.steps if step.id in way or step.held_reason == Reason.BUDGET.value)
    worth = [step for step in candidates if step.held_s >= max(MOMENT_S, PART * entry.seconds)]
    for step in sorted(worth, key=lambda step: -step.held_s)[:HOLDS_SHOWN]:
        took, by = format_duration(step.held_s), step.held_by
        if holds_up(step.held_reason):
            yield f"{by[0].upper()}{by[1:]} held {step.subject}'s {word(step)} for {took}."
        else:
            yield f"{took} of {step.subject}'s {'return' if step.kind == 'WaitBack' else word(step)}: {by}."


def steps_table(entry: Entry) -> tuple[Row, list[Row]]:
    header = header_row("WORKER", "HOST", "STEP", "FROM", "TOOK", "END", note="HELD BY")
    rows = [
        Row(
            (
                cell(step.subject),
                cell(step.host),
                cell(step.what),
                cell(_exact(step.began_s)),
                cell("no end seen" if step.ended_s is None else _exact(step.took_s)),
                cell("given up" if step.given_up else "done" if step.done else "–"),
            ),
            note=cell(f"{step.held_by} ({_exact(step.held_s)})" if step.held_by else ""),
        )
        for step in sorted(entry.steps, key=lambda step: (step.began_s, step.subject))
    ]
    return header, rows


def _exact(value: float) -> str:
    """Return a duration, with tenths below a minute."""
    return f"{value:.1f} s" if value < 60 else format_duration(value)

"""What the daemon says about a round and about a switch. Each text has a key that changes with its meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from vgpuctl.basics.durations import format_duration
from vgpuctl.basics.moments import moment
from vgpuctl.basics.phrases import folded_names
from vgpuctl.daemon.rounds import Round
from vgpuctl.engine.ports import Report
from vgpuctl.files import Files
from vgpuctl.model.errors import ExitCode
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.refusal import Refusal
from vgpuctl.operations import exit_code, unfinished_hosts
from vgpuctl.planning.holds import Blocked
from vgpuctl.reporting.verdicts import sentences

#: The key of a text, and the text.
Text = tuple[str, str]


def said_at_start(files: Files, now: datetime) -> Iterator[str]:
    """Yield what the daemon keeps, and what comes next: a daemon with nothing to do would say nothing at all."""
    if not files.timetables:
        yield "There is no timetable: nothing is kept until there is one."
    for name, timetable in files.timetables.items():
        coming = timetable.next_start(now)
        yield f"Keeps {name}. Next: {coming[0].name} at {moment(coming[1], now)}." if coming else f"Keeps {name}."


def verdict_texts(fleet: Fleet, found: Round) -> Iterator[Text]:
    """Yield why nothing begins on some hosts, and which workers somebody moved by hand."""
    yield from sentences(fleet, found.timetable, found.due, found.verdicts, found.now)
    for name, how in found.hands.items():
        yield f"{name} {how}", f"{name} was {how}: it stays so until the next start."


def blocked_texts(blocked: Iterable[Blocked]) -> Iterator[Text]:
    for each in blocked:
        yield f"{each.host} {each.sentence}", f"Blocked by hold on {each.host}: {each.sentence}."


def refused_texts(name: str, refusals: Iterable[Refusal]) -> Iterator[Text]:
    """Yield each refusal once, with the hosts that it stops."""
    hosts: dict[tuple[str, str], list[str]] = {}
    for each in refusals:
        hosts.setdefault((each.message, each.hint), []).append(each.host)
    for (message, hint), names in hosts.items():
        where = folded_names(names)
        yield f"{where} {message}", f"{name} is refused on {where}: {message} {hint}"


def said_at_beginning(name: str, found: Round, hosts: Iterable[str]) -> str:
    """Return that a switch begins, and for hosts that failed before, what has changed since."""
    changes = [
        f"{host}: {', '.join(found.verdicts[host].changed)}"
        for host in sorted(hosts)
        if host in found.verdicts and found.verdicts[host].changed
    ]
    again = f" again ({'; '.join(changes)})" if changes else ""
    return f"{name} begins{again}."


def said_at_end(name: str, report: Report) -> Iterator[str]:
    if report.unheard:
        yield f"{name} stopped: {' and '.join(report.unheard)} did not answer."
    for host in unfinished_hosts(report):
        yield f"{host.host} {host.end}{': ' if host.why else ''}{host.why}"
    if exit_code(report, refused=False) is ExitCode.DONE:
        yield f"It is {name}, after {format_duration(report.seconds)}."

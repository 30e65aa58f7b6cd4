"""What a person is told about hosts on which a shift does not begin, or is not tried again."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vgpuctl.basics.durations import format_duration
from vgpuctl.basics.moments import moment
from vgpuctl.basics.phrases import folded_names
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.hold import order_phrase
from vgpuctl.model.timetable import Timetable
from vgpuctl.planning.due import Due, begun_early, due
from vgpuctl.planning.verdicts import Hindrance, Verdict, verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindered:
    """A timetable's hosts on which the shift that is due does not begin, and why."""

    timetable: Timetable
    due: Due
    verdicts: Mapping[str, Verdict]


#: What other lines of a status say: orders of people, and hosts whose switch has failed.
_SAID_ELSEWHERE = {Hindrance.MAINTENANCE, Hindrance.PAUSED, Hindrance.PARKED}


def hindered(fleet: Fleet, timetable: Timetable, now: datetime, hosts: Container[str]) -> Hindered | None:
    """Return which of these hosts wait for something, or were skipped, although no person has ordered it.

    None if there is none.
    """
    now_due = due(timetable, fleet.orders, now, begun_early(fleet, timetable, now))
    if now_due is None:
        return None
    # Whether the files have changed since a failure is known to the daemon alone.
    found = verdicts(fleet, timetable, now_due, now, "")
    waiting = {host: v for host, v in found.items() if host in hosts and v.why and v.why not in _SAID_ELSEWHERE}
    return Hindered(timetable=timetable, due=now_due, verdicts=waiting) if waiting else None


def hindrance_documents(found: Hindered) -> Iterator[dict[str, Any]]:
    for host, verdict in found.verdicts.items():
        yield {
            "timetable": found.timetable.name,
            "host": host,
            "shift": found.due.shift,
            "why": verdict.why,
            "what": verdict.what or None,
            "until": verdict.until.isoformat(timespec="seconds") if verdict.until else None,
        }


def sentences(
    fleet: Fleet, timetable: Timetable, now_due: Due, found: Mapping[str, Verdict], now: datetime
) -> Iterator[tuple[str, str]]:
    """Yield one sentence for all hosts with the same hindrance, after a key that changes with its meaning."""
    alike: dict[tuple[Hindrance, datetime | None, str], list[str]] = {}
    for host, verdict in found.items():
        if verdict.why is not None:
            alike.setdefault((verdict.why, verdict.until, verdict.what), []).append(host)
    for (why, until, what), hosts in alike.items():
        names = folded_names(hosts)
        key = f"{timetable.name} {now_due.start.isoformat()} {why} {names} {until} {what}"
        together = Verdict(host=names, shift="", why=why, until=until, what=what)
        yield key, _sentence(fleet, timetable, now_due, together, now)


def _sentence(fleet: Fleet, timetable: Timetable, now_due: Due, verdict: Verdict, now: datetime) -> str:
    shift, host = f"{now_due.shift} on {timetable.name}", verdict.host
    until = moment(verdict.until, now) if verdict.until else ""
    pause = fleet.orders.pause
    by = order_phrase("paused", pause.who, until, pause.reason) if pause else "paused"
    left = format_duration((verdict.until - now).total_seconds()) if verdict.until else "too little"
    reason = verdict.what.rstrip(".")
    ends = f"at most until {until}" if until else "until they have ended"
    words = {
        Hindrance.MAINTENANCE: f"{host} is under maintenance{_until(until)}: nothing moves there. "
        f"Then: vgpuctl maintenance exit {host}",
        Hindrance.PAUSED: f"{shift} does not begin on {host}: {by}. Go on with: vgpuctl unpause",
        Hindrance.PARKED: f"{host} is parked and stays as it is: {reason}. It is tried again when that changes, "
        f"at the next start, or after: vgpuctl unpark {host}",
        Hindrance.RETRY: f"{shift} on {host} is tried again at {until}, or when its reason changes: {reason}.",
        Hindrance.SKIPPED: f"{shift} is skipped on {host}{_until(until)}: it could not begin in time. The shift before "
        "stays.",
        Hindrance.TOO_SHORT: f"{shift} is not begun on {host}: only {left} of it would remain. The shift before stays.",
        Hindrance.PODS: f"{shift} waits on {host} for pods that ask not to be disturbed: {verdict.what}, {ends}.",
    }
    return words[verdict.why] if verdict.why else ""


def _until(until: str) -> str:
    return f" until {until}" if until else ""


def turns_round(shift: str, due_now: Due | None) -> str:
    """Return why a running switch ends: another shift is due."""
    if due_now is None:
        return f"No shift is due any more: {shift} stops at this point."
    if due_now.shift == shift:
        return f"{shift} is due anew: its switch begins again."
    by = f", ordered by {due_now.override.who}" if due_now.override else ""
    return f"{due_now.shift} is due now{by}: {shift} turns round at this point."

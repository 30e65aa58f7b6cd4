"""How each entry of the ledger is written as JSON, and read back within bounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.model.departure import Departure
from vgpuctl.model.ledger import Entry, key_of
from vgpuctl.model.orders import Maintenance, Override, Pause
from vgpuctl.model.outcome import Outcome

Raw = Mapping[str, Any]


def text_of(entry: Entry) -> str:
    return json.dumps(_document(entry))


def entry_of(name: str, written: Any, name_of: Callable[[tuple[str, ...]], str]) -> Entry:
    """Return the entry under a key. UnreadableError if its text is not in our format, or belongs under another key."""
    raw = bounded.fields(bounded.document(written, "it"), "it")
    kind = name.split(".")[1] if name.startswith(".") else ""
    if kind not in _READERS:
        raise UnreadableError("no entry of this kind is known")
    entry = _READERS[kind](raw)
    if name_of(key_of(entry)) != name:
        raise UnreadableError("it names another timetable or host than its key")
    return entry


def _document(entry: Entry) -> dict[str, Any]:
    match entry:
        case Departure():
            return {
                "timetable": entry.timetable,
                "host": entry.host,
                "from": entry.origin,
                "to": entry.to,
                "since": entry.since,
                "awake": list(entry.awake),
                "carried": {name: list(vgpus) for name, vgpus in entry.carried.items()},
            }
        case Outcome():
            return {
                "timetable": entry.timetable,
                "host": entry.host,
                "shift": entry.shift,
                "start": entry.start.isoformat(),
                "arrived": entry.arrived,
                "tries": entry.tries,
                "again": entry.again.isoformat() if entry.again else None,
                "parked": entry.parked,
                "why": entry.why,
                "code": entry.code,
                "failedOn": dict(entry.failed_on),
            }
    order: dict[str, Any] = {
        "who": entry.who,
        "since": entry.since.isoformat(),
        "until": entry.until.isoformat() if entry.until else None,
        "reason": entry.reason,
    }
    match entry:
        case Override():
            return {"timetable": entry.timetable, "shift": entry.shift, **order}
        case Maintenance():
            return {"host": entry.host, **order}
        case Pause():
            return {"atOnce": entry.at_once, **order}


def _departure(raw: Raw) -> Departure:
    timetable, host, origin, to, since = (_text(raw, key) for key in ("timetable", "host", "from", "to", "since"))
    carried = bounded.fields(raw.get("carried"), "carried")
    return Departure(
        timetable=timetable,
        host=host,
        origin=origin,
        to=to,
        since=since,
        awake=bounded.texts(raw.get("awake"), "awake"),
        carried={worker: bounded.texts(vgpus, "carried") for worker, vgpus in carried.items()},
    )


def _outcome(raw: Raw) -> Outcome:
    failed_on = bounded.fields(raw.get("failedOn"), "failedOn")
    return Outcome(
        timetable=_text(raw, "timetable"),
        host=_text(raw, "host"),
        shift=_text(raw, "shift"),
        start=bounded.time(raw.get("start"), "start"),
        arrived=raw.get("arrived") is True,
        tries=bounded.whole(raw.get("tries"), "tries", most=10**6),
        again=_moment(raw, "again"),
        parked=raw.get("parked") is True,
        why=_text(raw, "why"),
        code=_text(raw, "code"),
        failed_on={key: bounded.text(value, "failedOn") for key, value in failed_on.items()},
    )


def _override(raw: Raw) -> Override:
    return Override(timetable=_text(raw, "timetable"), shift=_text(raw, "shift"), **_order(raw))


def _pause(raw: Raw) -> Pause:
    return Pause(at_once=raw.get("atOnce") is True, **_order(raw))


def _maintenance(raw: Raw) -> Maintenance:
    return Maintenance(host=_text(raw, "host"), **_order(raw))


def _order(raw: Raw) -> dict[str, Any]:
    since = bounded.time(raw.get("since"), "since")
    return {"who": _text(raw, "who"), "since": since, "until": _moment(raw, "until"), "reason": _text(raw, "reason")}


def _text(raw: Raw, key: str) -> str:
    return bounded.text(raw.get(key), key)


def _moment(raw: Raw, key: str) -> datetime | None:
    return None if raw.get(key) is None else bounded.time(raw[key], key)


_READERS: Mapping[str, Callable[[Raw], Entry]] = {
    "": _departure,
    "override": _override,
    "pause": _pause,
    "maintenance": _maintenance,
    "outcome": _outcome,
}

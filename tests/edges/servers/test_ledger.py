"""The ledger in its ConfigMap: each kind of entry comes back as it was written."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.kube.client import NotFoundError
from vgpuctl.kube.ledger import LedgerMap
from vgpuctl.model.departure import Departure
from vgpuctl.model.ledger import Entry, Ledger, key_of
from vgpuctl.model.orders import Maintenance, Override, Pause
from vgpuctl.model.outcome import Outcome

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
EVENING = NOON + timedelta(hours=8)

NAMES = st.text("abcxyz-.0", min_size=1, max_size=12).filter(lambda name: not name.startswith("."))
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))
ORDER = {"who": st.text(max_size=9), "since": MOMENTS, "until": st.none() | MOMENTS, "reason": st.text(max_size=20)}
ENTRIES = st.one_of(
    st.builds(Override, timetable=NAMES, shift=NAMES, **ORDER),
    st.builds(Pause, at_once=st.booleans(), **ORDER),
    st.builds(Maintenance, host=NAMES, **ORDER),
    st.builds(
        Outcome,
        timetable=NAMES,
        host=NAMES,
        shift=NAMES,
        start=MOMENTS,
        tries=st.integers(0, 100),
        again=st.none() | MOMENTS,
        why=st.text(max_size=20),
        code=st.text(max_size=5),
        failed_on=st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3),
    ),
    st.builds(Departure, timetable=NAMES, host=NAMES, origin=NAMES, to=NAMES, since=NAMES),
)


class Maps:
    """A server with one ConfigMap."""

    def __init__(self) -> None:
        self.data: dict[str, str] | None = None

    def get(self, _path: str) -> Any:
        if self.data is None:
            raise NotFoundError("no such thing")
        return {"metadata": {"name": "vgpuctl"}, "data": self.data}

    def patch(self, path: str, body: dict[str, dict[str, str | None]]) -> None:
        held = self.get(path)["data"] | body["data"]
        self.data = {key: text for key, text in held.items() if text is not None}

    def post(self, _path: str, body: dict[str, Any]) -> Any:
        self.data = body["data"]
        return body


def ledger() -> tuple[LedgerMap, Maps]:
    server = Maps()
    return LedgerMap(server, "vgpuctl"), server  # type: ignore[arg-type]


@given(st.lists(ENTRIES, max_size=6))
def test_each_entry_comes_back_as_it_was_written(entries: list[Entry]) -> None:
    kept, _ = ledger()
    written = {key_of(entry): entry for entry in entries}
    for key, entry in written.items():
        kept.write({key: entry})
    assert kept.read() == Ledger.of(written)
    kept.write(dict.fromkeys(written))
    assert kept.read() == Ledger()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"who": 1}', '{"who": "anna", "since": "yesterday"}'])
def test_an_order_that_cannot_be_read_hides_no_other(text: str) -> None:
    kept, server = ledger()
    pause = Pause(who="anna", since=NOON, until=EVENING)
    kept.write({key_of(pause): pause})
    server.data = {**(server.data or {}), ".override.day-night": text}
    assert kept.read() == Ledger.of({key_of(pause): pause})
    (unreadable,) = kept.read_once().unreadable
    assert (unreadable.kind, unreadable.name) == ("ledger entry", "vgpuctl/vgpuctl .override.day-night")


def test_an_entry_of_a_later_version_is_named_and_left_alone() -> None:
    kept, server = ledger()
    server.data = {".plan.x": json.dumps({"who": "anna"})}
    assert [each.why for each in kept.read_once().unreadable] == ["no entry of this kind is known"]


def test_an_order_is_in_force_until_it_expires() -> None:
    pause = Pause(who="anna", since=NOON, until=EVENING)
    moments = (NOON - timedelta(seconds=1), NOON, EVENING - timedelta(seconds=1), EVENING)
    assert [pause.active(now) for now in moments] == [False, True, True, False]
    assert Pause(who="anna", since=NOON).active(NOON + timedelta(days=900))

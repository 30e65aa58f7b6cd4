"""Moments are read as people write them, in this machine's zone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.basics.moments import parse_moment

NOON = datetime(2026, 11, 20, 11, 0, tzinfo=UTC)
Zone = Callable[[str], None]


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Zone]:
    """Sets this machine's zone for one test."""

    def use(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield use
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("18:00", "2026-11-20T17:00"),
        ("12:01", "2026-11-20T11:01"),
        ("12:00", "2026-11-21T11:00"),
        ("8:15", "2026-11-21T07:15"),
        ("2026-11-21 08:00", "2026-11-21T07:00"),
        ("2026-11-21T08:00", "2026-11-21T07:00"),
        ("2026-07-01 08:00:30", "2026-07-01T06:00:30"),
        ("2026-11-21T08:00:00Z", "2026-11-21T08:00"),
        ("2026-11-21T08:00:00+05:30", "2026-11-21T02:30"),
        ("2026-11-21 08:00z", "2026-11-21T08:00"),
    ],
)
def test_a_moment_without_a_zone_is_local_and_a_time_of_day_is_the_next_one(zone: Zone, text: str, utc: str) -> None:
    zone("Europe/Berlin")
    assert parse_moment(text, NOON) == datetime.fromisoformat(f"{utc}+00:00")


@pytest.mark.parametrize(("day", "hours"), [("2026-03-28", 23), ("2026-10-24", 25)])
def test_the_same_time_on_the_next_day_is_not_24_hours_later_when_the_clocks_change(
    zone: Zone, day: str, hours: int
) -> None:
    zone("Europe/Berlin")
    now = parse_moment(f"{day} 18:00", NOON)
    assert parse_moment("18:00", now) - now == timedelta(hours=hours)


def test_a_time_that_the_changing_clocks_leave_out_counts_from_the_change_on(zone: Zone) -> None:
    zone("Europe/Berlin")
    evening = parse_moment("2026-03-28 23:00", NOON)
    assert parse_moment("02:30", evening) == parse_moment("2026-03-29 03:30", NOON)


NO_MOMENTS = """
soon|25:00|18:60|1800|18|2026-11-21|2026-13-01 08:00|2026-02-30 08:00|20261121T080000Z|2026-W47-5 08:00|2h
0001-01-01 08:00|9999-12-31 23:59|9999-12-31T23:59:59-10:00|١٨:٠٠
"""


@pytest.mark.parametrize("text", ["", "18:00\n", *NO_MOMENTS.strip().replace("\n", "|").split("|")])
def test_any_other_text_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        parse_moment(text, NOON)


@given(st.text(max_size=40) | st.text(alphabet="0123456789-: TZ+.", max_size=30))
def test_a_text_is_a_moment_with_a_zone_or_unreadable(text: str) -> None:
    try:
        assert parse_moment(text, NOON).tzinfo is not None
    except UnreadableError:
        return

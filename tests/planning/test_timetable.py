"""Which shift is it? Standard cron, across midnight, in the timetable's own time zone, through changes of the clock."""

from __future__ import annotations

import itertools
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.basics.names import Names
from vgpuctl.model.timetable import Shift, Timetable

BERLIN = ZoneInfo("Europe/Berlin")


def timetable(**starts: str) -> Timetable:
    shifts = {name: Shift(name, tuple(lines.split(";")), workers=Names((name,))) for name, lines in starts.items()}
    return Timetable(name="t", timezone="Europe/Berlin", shifts=shifts)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN)


DAY_NIGHT = timetable(day="0 8 * * *", night="0 20 * * *")


@pytest.mark.parametrize(
    ("now", "shift", "since"),
    [
        ("2026-11-18T07:59:59", "night", "2026-11-17T20:00"),
        ("2026-11-18T08:00:00", "day", "2026-11-18T08:00"),
        ("2026-11-18T19:59:59.999999", "day", "2026-11-18T08:00"),
        ("2026-11-18T20:00:00", "night", "2026-11-18T20:00"),
        ("2026-11-19T00:00:00", "night", "2026-11-18T20:00"),
    ],
)
def test_the_shift_whose_start_is_nearest_before_now(now: str, shift: str, since: str) -> None:
    found = DAY_NIGHT.shift_at(at(now))
    assert found is not None
    assert (found[0].name, found[1]) == (shift, at(since))


def test_weekdays_are_standard_crons() -> None:
    """1-5 is Monday to Friday, and a weekend belongs to the night that began on Friday."""
    weekdays = timetable(day="0 8 * * 1-5", night="0 20 * * *")
    for day, expected in ((20, "day"), (21, "night"), (22, "night"), (23, "day")):
        found = weekdays.shift_at(at(f"2026-11-{day}T12:00"))
        assert found is not None
        assert found[0].name == expected


def test_several_starts_of_one_shift() -> None:
    week = timetable(day="0 8 * * 1-5;0 10 * * 6", night="0 20 * * *")
    found = week.shift_at(at("2026-11-21T10:30"))
    assert found is not None
    assert found[0].name == "day"


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_a_change_of_the_clock_neither_loses_nor_repeats_a_start(day: str) -> None:
    early = timetable(day="30 2 * * *", night="0 20 * * *")
    shifts = []
    for hour in range(24):
        found = early.shift_at(at(f"{day}T{hour:02}:45"))
        assert found is not None
        shifts.append(found[0].name)
    changes = [pair for pair in itertools.pairwise(shifts) if pair[0] != pair[1]]
    assert changes == [("night", "day"), ("day", "night")]


def test_a_start_in_the_hour_that_comes_twice_is_not_forgotten_in_its_second_half() -> None:
    """The shift that began at the first 02:30 is in force at the second 02:15, and does not begin again at 02:30."""
    early = timetable(day="30 2 * * *", night="0 20 * * *")
    for minute in (0, 15, 29, 30, 59):
        now = datetime(2026, 10, 25, 2, minute, tzinfo=BERLIN, fold=1)
        assert early.shift_at(now) == (early.shifts["day"], at("2026-10-25T02:30"))
        assert early.next_start_of("day", now) == at("2026-10-26T02:30")


def test_a_line_of_every_minute_ticks_twice_in_the_hour_that_comes_twice() -> None:
    busy = timetable(busy="*/15 * * * *")
    for fold, minute in ((0, 20), (1, 10), (1, 50)):
        now = datetime(2026, 10, 25, 2, minute, tzinfo=BERLIN, fold=fold)
        found = busy.shift_at(now)
        assert found is not None
        assert 0 <= now.timestamp() - found[1].timestamp() < 15 * 60


@given(st.datetimes(min_value=datetime(2026, 1, 1), max_value=datetime(2027, 12, 31)))
def test_now_is_always_between_the_last_start_and_the_next(moment: datetime) -> None:
    now = moment.replace(tzinfo=ZoneInfo("UTC"))
    past, following = DAY_NIGHT.shift_at(now), DAY_NIGHT.next_start(now)
    assert past is not None
    assert following is not None
    assert past[1].timestamp() <= now.timestamp() < following[1].timestamp()
    assert past[0].name != following[0].name

"""A year of a timetable, compared with a slow reckoning that looks at every minute."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vgpuctl.basics.names import Names
from vgpuctl.model.calendar import ALWAYS, Days, StayingDays
from vgpuctl.model.starts import Starts
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.reporting.coming import clock_changes, spans

MINUTE = timedelta(minutes=1)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
HOLIDAYS = StayingDays((Days(date(2026, 12, 24), date(2026, 12, 27)),), "day")
LONG_RUN = StayingDays((Days(date(2026, 5, 1), date(2026, 5, 1)), Days(date(2026, 10, 4), date(2026, 10, 4))), "night")


@dataclass(frozen=True)
class Line:
    """A shift that starts on some weekdays (Sunday is 0) at one time of day."""

    shift: str
    hour: int
    minute: int
    weekdays: frozenset[int] = frozenset(range(7))

    @property
    def cron(self) -> str:
        days = ",".join(map(str, sorted(self.weekdays)))
        return f"{self.minute} {self.hour} * * {days}"

    def is_due(self, local: datetime) -> bool:
        return (local.hour, local.minute) == (self.hour, self.minute) and local.isoweekday() % 7 in self.weekdays


def timetable(zone: str, lines: tuple[Line, ...], season: Days = ALWAYS, *staying: StayingDays) -> Timetable:
    names = dict.fromkeys(line.shift for line in lines)
    starts = {name: tuple(line.cron for line in lines if line.shift == name) for name in names}
    shifts = {name: Shift(name, starts[name], workers=Names((name,))) for name in names}
    return Timetable(name="t", timezone=zone, shifts=shifts, season=season, staying=staying)


def by_the_minute(table: Timetable, lines: tuple[Line, ...], since: datetime, days: int) -> Iterator[str | None]:
    """Yield the shift of each minute: walk through the local minutes of each day, and look at each line.

    Debian's cron: what falls into skipped minutes is due right after them; a minute that comes twice counts once.
    """
    zone, current = ZoneInfo(table.timezone), None
    now, last, offset = since.astimezone(UTC), None, timedelta()
    times = {(line.hour, line.minute) for line in lines} | {(0, 0)}
    for number in range(days * 1440):
        # Clocks change at quarters of an hour.
        offset = now.astimezone(zone).utcoffset() or timedelta() if number % 15 == 0 else offset
        local = now.replace(tzinfo=None) + offset
        for minute in (local,) if last is None or local - last == MINUTE else _new_minutes(last, local):
            if (minute.hour, minute.minute) in times:
                current = _begun(table, lines, minute) or current
        last = local if last is None else max(last, local)
        yield current if table.season is ALWAYS or local.date() in table.season else None
        now += MINUTE


def _new_minutes(last: datetime, local: datetime) -> list[datetime]:
    count = int((local - last) / MINUTE)
    return [last + MINUTE * (number + 1) for number in range(max(0, count))]


def _begun(table: Timetable, lines: tuple[Line, ...], minute: datetime) -> str | None:
    day = minute.date()
    if day not in table.season:
        return None
    stays = next((staying.shift for staying in table.staying if any(day in days for days in staying.days)), None)
    if any(line.is_due(minute) for line in lines):
        return stays or next(line.shift for line in lines if line.is_due(minute))
    starts_today = any(day.isoweekday() % 7 in line.weekdays for line in lines)
    return stays if (minute.hour, minute.minute) == (0, 0) and stays and not starts_today else None


def wrong_minutes(table: Timetable, lines: tuple[Line, ...], since: datetime, days: int) -> list[datetime]:
    """Return the minutes at which the product's spans say another shift than the slow reckoning."""
    until = since.astimezone(UTC) + timedelta(days=days)
    found = [(span.start, span.end, span.shift) for span in spans(table, since, until)]
    wrong, now = [], since.astimezone(UTC)
    bounds = [(start.astimezone(UTC), end.astimezone(UTC) if end else until, shift) for start, end, shift in found]
    coming = iter(bounds)
    begin, end, shift = next(coming, (until, until, ""))
    for expected in by_the_minute(table, lines, since, days):
        while end <= now < until:
            begin, end, shift = next(coming, (until, until, ""))
        said = shift if begin <= now else None
        # Before the first start that the reckoning has seen, it knows nothing.
        if said != expected and not (expected is None and table.season == ALWAYS and now - since < timedelta(days=8)):
            wrong.append(now)
        now += MINUTE
    return wrong


def agrees_at_any_moment(table: Timetable, since: datetime, days: int, seed: int) -> None:
    """`shift_at` says at each boundary, a second before it, and at random moments what the spans say."""
    rng, until = random.Random(seed), since.astimezone(UTC) + timedelta(days=days)
    found = list(spans(table, since, until))
    for span in found[1:]:
        now = table.shift_at(span.start)
        assert now is not None
        assert now[0].name == span.shift
    for one, two in pairwise(found):
        before = table.shift_at(two.start - timedelta(seconds=1))
        assert (before[0].name if before else None) == (one.shift if one.end == two.start else None)
    for _ in range(200):
        moment = since + timedelta(seconds=rng.randrange(days * 86400))
        covering = [span for span in found if span.start <= moment and (span.end is None or moment < span.end)]
        now = table.shift_at(moment)
        assert (now[0].name if now else None) == (covering[0].shift if covering else None), moment


YEAR = (
    Line("day", 8, 0, frozenset(range(1, 6))),
    Line("night", 20, 0),
    Line("weekend", 0, 0, frozenset({6})),
    Line("early", 2, 30, frozenset({0})),
)


@pytest.mark.parametrize("zone", ZONES)
def test_a_year_is_right_at_every_minute(zone: str) -> None:
    table = timetable(zone, YEAR, ALWAYS, HOLIDAYS, LONG_RUN)
    since = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    assert wrong_minutes(table, YEAR, since, 365) == []
    agrees_at_any_moment(table, since, 365, seed=1)


lines_of = st.lists(
    st.builds(
        Line,
        shift=st.sampled_from(("day", "night", "other")),
        hour=st.integers(0, 23),
        minute=st.sampled_from((0, 15, 30, 59)),
        weekdays=st.sets(st.integers(0, 6), min_size=1).map(frozenset),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda line: (line.hour, line.minute),
).map(tuple)
dates = st.dates(date(2026, 3, 20), date(2026, 4, 20))
ranges = st.tuples(dates, dates).map(lambda pair: Days(min(pair), max(pair)))


# The example count is a sixth of the others': each example walks through 43,200 minutes.
@settings(max_examples=settings().max_examples // 6)
@given(st.data(), lines_of, st.sampled_from(ZONES), ranges | st.just(ALWAYS))
def test_so_is_any_month(data: st.DataObject, lines: tuple[Line, ...], zone: str, season: Days) -> None:
    """Both hemispheres change their clocks in these weeks."""
    names = sorted({line.shift for line in lines})
    staying = data.draw(st.lists(st.builds(StayingDays, st.tuples(ranges), st.sampled_from(names)), max_size=2))
    table = timetable(zone, lines, season, *staying)
    since = datetime(2026, 3, 15, tzinfo=ZoneInfo(zone))
    assert wrong_minutes(table, lines, since, 30) == []
    agrees_at_any_moment(table, since, 30, seed=2)


RARE = ("0 20 24 12 *", "0 0 1 1 *", "30 2 25 10 *", "0 8 1 3,9 *", "0 4 13 * 5")
FREQUENT = {"a": "*/30 */4 * * *", "b": "0 8 * * *", "c": "*/30 2-3 * * 0"}


def one_by_one(table: Timetable, shift: str, now: datetime, until: datetime) -> datetime | None:
    """Walk through all starts of all shifts."""
    for start in takewhile(lambda start: start.at < until, Starts(table).after(now)):
        if start.shift.name == shift:
            return start.at
    return None


@settings(max_examples=settings().max_examples // 4)
@given(st.data(), st.sampled_from(ZONES), st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)))
def test_the_next_start_of_a_rare_shift_is_found_beside_a_busy_one(
    data: st.DataObject, zone: str, moment: datetime
) -> None:
    """Walking through all starts finds the same."""
    names = data.draw(st.lists(st.sampled_from(("a", "b", "c")), min_size=1, unique=True))
    out = st.lists(ranges, max_size=1).map(tuple)
    shifts = {}
    for name in names:
        line = data.draw(st.sampled_from((*RARE, FREQUENT[name])))
        season, never_on = data.draw(ranges | st.just(ALWAYS)), data.draw(out)
        shifts[name] = Shift(name, (line,), season=season, never_on=never_on)
    staying = data.draw(st.lists(st.builds(StayingDays, st.tuples(ranges), st.sampled_from(names)), max_size=2))
    table = Timetable(name="t", timezone=zone, shifts=shifts, staying=tuple(staying))
    now = moment.replace(tzinfo=UTC)
    until = now + timedelta(days=400)
    expected = {name: one_by_one(table, name, now, until) for name in names}
    found = {name: table.next_start_of(name, now) for name in names}
    assert {name: at if at and at < until else None for name, at in found.items()} == expected
    current = table.shift_at(now)
    others = [at for name, at in expected.items() if at and not (current and current[0].name == name)]
    change = Starts(table).next_change(now)
    assert (change.at if change and change.at < until else None) == min(others, default=None)


def test_a_yearly_start_is_found_beside_one_every_minute() -> None:
    """And so is a leap day's; a start that an earlier shift always takes is given up, not looked for until 9999."""
    shifts = {
        "busy": Shift("busy", ("* * * * *",), never_on=(Days(date(2026, 12, 24), date(2026, 12, 24)),)),
        "yearly": Shift("yearly", ("0 20 24 12 *",)),
        "leap": Shift("leap", ("30 12 29 2 *",), never_on=(Days(date(2028, 2, 29), date(2028, 2, 29)),)),
        "taken": Shift("taken", ("0 4 29 2 *",)),
    }
    table = Timetable(name="t", timezone="UTC", shifts=shifts)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert table.next_start_of("yearly", now) == datetime(2026, 12, 24, 20, tzinfo=UTC)
    assert table.next_start(now) == (shifts["yearly"], datetime(2026, 12, 24, 20, tzinfo=UTC))
    assert table.next_start_of("leap", now) is None
    assert table.next_start_of("taken", now) is None
    alone = Timetable(name="t", timezone="UTC", shifts={"leap": shifts["leap"]})
    assert alone.next_start_of("leap", now) == datetime(2032, 2, 29, 12, 30, tzinfo=UTC)
    assert alone.next_start(datetime(2033, 1, 1, tzinfo=UTC)) is None


def test_dates_that_a_busy_shift_leaves_out_are_stepped_over() -> None:
    """Forward and backward, whether the shift names them or they stay in another one."""
    eves, holiday = Days(date(2026, 12, 23), date(2026, 12, 24)), date(2026, 12, 25)
    shifts = {
        "busy": Shift("busy", ("* * * * *",), never_on=(eves,)),
        "calm": Shift("calm", ("0 20 * * *",)),
    }
    staying = StayingDays((Days(holiday, holiday),), "calm")
    table = Timetable(name="t", timezone="UTC", shifts=shifts, staying=(staying,))
    noon = datetime(2026, 12, 24, 12, tzinfo=UTC)
    assert table.shift_at(datetime(2026, 12, 23, 12, tzinfo=UTC)) == (
        shifts["busy"],
        datetime(2026, 12, 22, 23, 59, tzinfo=UTC),
    )
    assert table.next_start_of("busy", noon) == datetime(2026, 12, 26, tzinfo=UTC)
    left_out = Timetable(name="t", timezone="UTC", shifts={"busy": shifts["busy"]})
    assert left_out.next_start_of("busy", noon) == datetime(2026, 12, 25, tzinfo=UTC)


def test_a_timetable_counts_from_its_first_date_until_its_last() -> None:
    lines = (Line("day", 8, 0), Line("night", 20, 0))
    table = timetable("Europe/Berlin", lines, Days(date(2026, 11, 2), date(2026, 11, 3)))
    at = datetime(2026, 10, 1, tzinfo=UTC)
    found = [
        (span.shift, span.start.isoformat(), span.end and span.end.isoformat())
        for span in spans(table, at, at + timedelta(days=60))
    ]
    assert found == [
        ("day", "2026-11-02T08:00:00+01:00", "2026-11-02T20:00:00+01:00"),
        ("night", "2026-11-02T20:00:00+01:00", "2026-11-03T08:00:00+01:00"),
        ("day", "2026-11-03T08:00:00+01:00", "2026-11-03T20:00:00+01:00"),
        ("night", "2026-11-03T20:00:00+01:00", "2026-11-04T00:00:00+01:00"),
    ]


def test_a_season_far_away_is_found_at_once() -> None:
    """A start a minute for eight years is not walked through."""
    shifts = {"busy": Shift("busy", ("* * * * *",), workers=Names(("w",)), season=Days(date(2034, 1, 1), None))}
    table = Timetable(name="t", timezone="UTC", shifts=shifts)
    start = Starts(table).next_change(datetime(2026, 1, 1, tzinfo=UTC))
    assert start is not None
    assert start.at == datetime(2034, 1, 1, tzinfo=UTC)
    assert Starts(table).in_force(datetime(2026, 1, 1, tzinfo=UTC)) is None


def test_of_two_starts_at_one_moment_the_first_in_the_file_counts() -> None:
    """Looking ahead and looking back agree."""
    table = timetable("UTC", (Line("day", 8, 0), Line("night", 20, 0), Line("other", 8, 0)))
    at = datetime(2026, 11, 20, 7, tzinfo=UTC)
    assert [span.shift for span in spans(table, at, at + timedelta(days=2))] == [
        "night",
        "day",
        "night",
        "day",
        "night",
    ]
    now = table.shift_at(datetime(2026, 11, 20, 8, tzinfo=UTC))
    assert now is not None
    assert now[0].name == "day"


def test_dates_without_a_start_begin_with_their_shifts_at_midnight() -> None:
    weekdays = frozenset(range(1, 6))
    lines = (Line("day", 8, 0, weekdays), Line("night", 20, 0, weekdays))
    saturday, sunday = date(2026, 11, 21), date(2026, 11, 22)
    one, two = StayingDays((Days(saturday, saturday),), "day"), StayingDays((Days(sunday, sunday),), "night")
    table = timetable("UTC", lines, ALWAYS, one, two)
    for day, shift in ((saturday, "day"), (sunday, "night")):
        assert table.shift_at(datetime.combine(day, time(12), UTC)) == (
            table.shifts[shift],
            datetime.combine(day, time(), UTC),
        )


def test_a_shift_can_leave_dates_out() -> None:
    """The other shift then lasts on."""
    night = Shift(
        "night", ("0 20 * * *",), workers=Names(("n",)), never_on=(Days(date(2026, 12, 24), date(2026, 12, 24)),)
    )
    day = Shift("day", ("0 8 * * *",), workers=Names(("d",)))
    table = Timetable(name="t", timezone="UTC", shifts={"day": day, "night": night})
    found = table.shift_at(datetime(2026, 12, 24, 23, tzinfo=UTC))
    assert found is not None
    assert found == (day, datetime(2026, 12, 24, 8, tzinfo=UTC))


def test_changes_of_the_clocks_are_found_to_the_minute() -> None:
    since, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    found = [(change.at.isoformat(), change.by) for change in clock_changes("Australia/Lord_Howe", since, until)]
    assert found == [
        ("2026-04-05T01:30:00+10:30", timedelta(minutes=-30)),
        ("2026-10-04T02:30:00+11:00", timedelta(minutes=30)),
    ]
    assert list(clock_changes("Asia/Kolkata", since, until)) == []

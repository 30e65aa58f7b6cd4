"""An override among the spans of a timetable: what is before it, instead of it, and after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.fleets import CATALOGUE, WHOLE, fleet, worker
from vgpuctl.basics.names import Names
from vgpuctl.model.orders import Orders, Override
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.planning.wishes import switch_wish
from vgpuctl.reporting.coming import spans, with_override

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
TABLE = Timetable(
    name="day-night",
    timezone="UTC",
    shifts={"day": Shift("day", ("0 8 * * *",)), "night": Shift("night", ("0 20 * * *",))},
)


def sleeps_until(override: Override | None) -> str:
    """Return until when the night's worker sleeps, if the day is put in force at noon."""
    workers = {"day": Names(("worker-1",)), "night": Names(("worker-5",))}
    table = replace(TABLE, shifts={name: replace(each, workers=workers[name]) for name, each in TABLE.shifts.items()})
    orders = Orders(overrides={"day-night": override} if override else {})
    some = replace(fleet(worker("worker-1"), worker("worker-5", WHOLE, on=False)), orders=orders)
    sleep = switch_wish(some, CATALOGUE, table, "day", NOON).workers["worker-5"].sleep
    assert sleep is not None
    return sleep.until


@pytest.mark.parametrize(
    ("hours_long", "until"),
    [(None, ""), (2, "2026-11-20T20:00:00Z"), (10, "2026-11-20T22:00:00Z"), (24, "2026-11-21T20:00:00Z")],
)
def test_a_node_says_until_when_it_sleeps_by_the_override_in_force(hours_long: int | None, until: str) -> None:
    assert sleeps_until(None) == "2026-11-20T20:00:00Z"
    ends = None if hours_long is None else NOON + timedelta(hours=hours_long)
    order = Override(who="anna", since=NOON, until=ends, timetable="day-night", shift="day")
    assert sleeps_until(order) == until


def hours(shift: str, since: int, until: int | None) -> list[tuple[str, float, float | None]]:
    """Return the spans from noon on for two days, in hours after noon, with an override between these hours."""
    order = Override(
        who="anna",
        since=NOON + timedelta(hours=since),
        until=None if until is None else NOON + timedelta(hours=until),
        timetable="day-night",
        shift=shift,
    )
    end = NOON + timedelta(hours=40)
    found = with_override(spans(TABLE, NOON, end), order, NOON, end)
    return [(span.shift, after(span.start) or 0.0, after(span.end)) for span in found]


def after(moment: datetime | None) -> float | None:
    return None if moment is None else (moment - NOON).total_seconds() / 3600


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (
            ("night", -1, 2),
            [("night", -1, 2), ("day", 2, 8), ("night", 8, 20), ("day", 20, 32), ("night", 32, 44)],
        ),
        (
            ("night", 1, 10),
            [("day", -4, 1), ("night", 1, 10), ("night", 10, 20), ("day", 20, 32), ("night", 32, 44)],
        ),
        (("day", 0, None), [("day", 0, None)]),
        (("day", 0, 36), [("day", 0, 36), ("night", 36, 44)]),
        (
            ("night", -9, -5),
            [("day", -4, 8), ("night", 8, 20), ("day", 20, 32), ("night", 32, 44)],
        ),
    ],
)
def test_an_override_takes_the_place_of_what_the_timetable_says(
    order: tuple[str, int, int | None], expected: list[tuple[str, float, float | None]]
) -> None:
    assert hours(*order) == expected

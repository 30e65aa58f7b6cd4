"""What others wrote is read within bounds, or is unreadable in a few words that quote nothing of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import DEEPEST, MOST_WHOLE, UnreadableError

READERS: list[Callable[[Any, str], Any]] = [
    bounded.whole,
    bounded.seconds,
    bounded.text,
    bounded.items,
    bounded.texts,
    bounded.fields,
    bounded.names,
    bounded.time,
    bounded.document,
    lambda value, of: bounded.part(value, of, 7),
]
ODD = ["9" * 5000, "[" * 300_000, '{"a":' * 300_000, "NaN", "1e308", "é" * 2_000_000, "\ud800", "٣", "", "\x1b[2J\n"]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.sampled_from(ODD),
    lambda some: st.lists(some, max_size=4) | st.dictionaries(st.text(max_size=9), some, max_size=4),
    max_leaves=6,
)


@pytest.mark.parametrize("read", READERS)
@given(value=ANY)
def test_no_reader_fails_in_any_other_way_than_its_own(read: Callable[[Any, str], Any], value: Any) -> None:
    try:
        read(value, "it")
    except UnreadableError as error:
        assert str(error).startswith("it ")
        assert len(str(error)) < 80
        assert str(error).isascii() and str(error).isprintable()


@given(st.integers(0, MOST_WHOLE))
def test_a_whole_number_is_read_as_itself_and_as_a_text(number: int) -> None:
    assert bounded.whole(number, "it") == bounded.whole(str(number), "it") == number


@pytest.mark.parametrize(
    "value",
    [
        MOST_WHOLE + 1,
        -1,
        "9" * 19,
        "9" * 5000,
        10**6000,
        "٣",
        "³",
        "1_0",
        " 1",
        "1\n",
        "1.0",
        1.0,
        True,
        None,
        "",
        "0x1",
    ],
    ids=lambda value: str(type(value)),
)
def test_no_other_number_is_whole(value: Any) -> None:
    with pytest.raises(UnreadableError):
        bounded.whole(value, "it")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308, -0.1, 10**400, True, "1", None])
def test_seconds_are_finite_and_no_more_than_ten_years(value: Any) -> None:
    with pytest.raises(UnreadableError):
        bounded.seconds(value, "it")
    assert bounded.seconds(bounded.MOST_SECONDS, "it") == bounded.MOST_SECONDS


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(8999, 12, 31)),
    st.timedeltas(timedelta(hours=-23), timedelta(hours=23)),
)
def test_a_time_with_a_zone_is_read_and_can_be_told_in_any_other(naive: datetime, off: timedelta) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=off // timedelta(minutes=1))))
    read = bounded.time(moment.isoformat(), "it")
    assert read == moment
    assert read.tzinfo is UTC
    assert abs(read.astimezone(timezone(timedelta(hours=-23))) - moment) == timedelta()


@pytest.mark.parametrize(
    "value", ["2026-01-31T08:00:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "2026", "soon", "", 3, None]
)
def test_what_could_not_be_compared_or_told_is_no_time(value: Any) -> None:
    with pytest.raises(UnreadableError):
        bounded.time(value, "it")


@given(st.recursive(st.none() | st.integers(-MOST_WHOLE, MOST_WHOLE) | st.text(), st.lists, max_leaves=20))
def test_a_document_within_its_bounds_is_what_was_written(value: Any) -> None:
    with suppress(UnreadableError):
        assert bounded.document(json.dumps(value), "it", deepest=4) == value
        assert json.dumps(value).count("[") == 0 or depth(value) <= 4


def depth(value: Any) -> int:
    return 1 + max((depth(each) for each in value), default=0) if isinstance(value, list) else 0


@pytest.mark.parametrize("deep", [DEEPEST, DEEPEST + 1, 900, 150_000])
@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
def test_how_deep_a_document_is_never_depends_on_pythons_stack(deep: int, opens: str, closes: str) -> None:
    written = opens * (deep - 1) + ("{}" if opens == '{"a":' else "[]") + closes * (deep - 1)
    if deep <= DEEPEST:
        assert bounded.document(written, "it")
    else:
        with pytest.raises(UnreadableError, match=f"^it is nested deeper than {DEEPEST}$"):
            bounded.document(written, "it")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e309", "9" * 21, "9" * 5000, f"-{'9' * 5000}"])
def test_no_number_of_a_document_is_without_an_end(number: str) -> None:
    with pytest.raises(UnreadableError, match=r"^it has a number that is too large or none$"):
        bounded.document(f'{{"a": [{number}]}}', "it")


def test_what_is_too_long_or_too_much_is_unreadable() -> None:
    for read, value in (
        (bounded.text, "x" * 1025),
        (bounded.texts, ["x" * 1025]),
        (bounded.texts, ["x"] * 4097),
        (bounded.names, "x," * 4097),
        (bounded.fields, {str(number): 1 for number in range(4097)}),
        (bounded.fields, {"x" * 1025: 1}),
        (bounded.document, '"' + "x" * (1 << 20) + '"'),
    ):
        with pytest.raises(UnreadableError, match=r"longer than|more than"):
            read(value, "it")


@pytest.mark.parametrize(("written", "number"), [("25%", 3), ("100%", 10), ("0%", 0), (4, 4), ("4", 4)])
def test_a_part_is_a_number_or_a_percentage_rounded_up(written: Any, number: int) -> None:
    assert bounded.part(written, "it", 10) == number


def test_what_is_only_shown_is_cut() -> None:
    assert bounded.cut("x" * 9, 9) == "x" * 9
    assert bounded.cut("x" * 10, 9) == "x" * 8 + "…"
    assert bounded.cut(None) == bounded.cut(["x"]) == ""

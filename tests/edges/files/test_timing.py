"""The keys of a timetable that say when switches begin, what holds them back, and when they are tried again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.files import read_timetable
from vgpuctl.model.errors import UsageError
from vgpuctl.model.pods import DO_NOT_DISRUPT, SAFE_TO_EVICT
from vgpuctl.model.profiles import Catalogue, Profile
from vgpuctl.model.selectors import parse_selector
from vgpuctl.model.timetable import Timetable
from vgpuctl.model.timing import HoldWhile, PodSelector, Retry, Timing

KNOWN = Catalogue({"small": Profile("small", ("grid_v100-4q",))})
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.yaml"


def timetable(path: Path, text: str, night: str = "") -> Timetable:
    shifts = f'shifts:\n  day: {{starts: "0 8 * * *", profiles: small}}\n  night: {{starts: "0 20 * * *"{night}}}\n'
    path.write_text(f"version: 1\ntimezone: UTC\n{shifts}{text}")
    return read_timetable(path, KNOWN)


def faults(path: Path, text: str, night: str = "") -> list[str]:
    with pytest.raises(UsageError) as refused:
        timetable(path, text, night)
    return [line.strip() for line in refused.value.message.splitlines()[1:]]


def test_without_these_keys_a_switch_begins_at_its_start_and_nothing_holds_it(path: Path) -> None:
    found = timetable(path, "")
    assert {shift.timing for shift in found.shifts.values()} == {Timing()}
    assert Timing() == Timing(early=None, begin_by=None, skip_after=None, min_run=None)
    assert (found.hold_while, found.retry, found.announce) == (HoldWhile(), Retry(tries=3, pause=5 * MINUTE), HOUR)


def test_the_shifts_own_value_wins_over_the_timetables(path: Path) -> None:
    text = "early: auto\nbegin_by: 1h\nskip_after: 2h\nmin_run: 90m\n"
    found = timetable(path, text, ", early: 10m, skip_after: 3h, min_run: 0s")
    assert found.shifts["day"].timing == Timing(early="auto", begin_by=HOUR, skip_after=2 * HOUR, min_run=90 * MINUTE)
    own = Timing(early=10 * MINUTE, begin_by=HOUR, skip_after=3 * HOUR, min_run=timedelta())
    assert found.shifts["night"].timing == own


def test_retry_and_announce_are_read(path: Path) -> None:
    found = timetable(path, "retry: {tries: 5, pause: 30s}\nannounce: 0s\n")
    assert (found.retry, found.announce) == (Retry(tries=5, pause=MINUTE / 2), timedelta())
    assert timetable(path, "retry: {tries: 5}\n").retry == Retry(tries=5)


def test_pods_that_hold_are_chosen_by_labels_or_by_an_annotation(path: Path) -> None:
    text = "hold_while: [do_not_disrupt, {selector: app=training, namespace: team-*}, {selector: a}]\n"
    chosen = (
        PodSelector(selector=parse_selector("app=training"), namespace="team-*"),
        PodSelector(selector=parse_selector("a"), namespace="*"),
    )
    assert timetable(path, text).hold_while == HoldWhile(pods=chosen, annotations=frozenset({DO_NOT_DISRUPT}))
    alone = HoldWhile(annotations=frozenset({SAFE_TO_EVICT}))
    assert timetable(path, "hold_while: not_safe_to_evict\n").hold_while == alone


@pytest.mark.parametrize(
    ("text", "night", "said"),
    [
        ("early: soon", "", "line 6: early: 'soon' is not a duration such as 90s, 10m or 1h, or auto"),
        ("begin_by: -1", "", "line 6: begin_by: -1 is not a duration such as 90s, 10m or 1h"),
        ("announce: 9000h", "", "line 6: announce: 9000h is longer than 366 days"),
        (
            "",
            ", skip_after: 0s",
            "line 5: shifts.night.skip_after: must be longer than 0, because every start would be",
        ),
        (
            "begin_by: 3h\nskip_after: 2h",
            "",
            "line 6: begin_by: begin_by is later than skip_after, so the start would be",
        ),
        ("begin_by: 3h", ", skip_after: 2h", "line 5: shifts.night.skip_after: begin_by is later than skip_after"),
        ("retry: {tries: 0}", "", "line 6: retry.tries: must be a whole number from 1 to 100"),
        ("retry: {tries: 101}", "", "line 6: retry.tries: must be a whole number from 1 to 100"),
        ("retry: {pause: 0}", "", "line 6: retry.pause: must be longer than 0, because each pause is twice the one"),
        ("retry: {trys: 1}", "", "line 6: retry.trys: is not a known key; did you mean tries?"),
        ("hold_while: [do_not_disrupted]", "", "line 6: hold_while[0]: must be do_not_disrupt, not_safe_to_evict or a"),
        (
            "hold_while:\n- selector: a b",
            "",
            "line 7: hold_while[0].selector: The selector 'a b' cannot be understood at",
        ),
        ("hold_while: {namespace: a}", "", "line 6: hold_while: a mapping here needs a selector, such as app=training"),
        ("earli: 10m", "", "line 6: earli: is not a known key; did you mean early?"),
    ],
)
def test_one_fault_is_reported_once_with_its_line(path: Path, text: str, night: str, said: str) -> None:
    (fault,) = faults(path, text, night)
    assert fault.startswith(said)


def test_a_value_that_a_shift_takes_over_is_no_second_fault(path: Path) -> None:
    """The shift night has both from its timetable, and day has one of its own that ends the contradiction."""
    text = "begin_by: 3h\nskip_after: 2h\n"
    assert len(faults(path, text, ", early: 5m")) == 1
    assert timetable(path, "begin_by: 1h\nskip_after: 1h\n").shifts["day"].timing.begin_by == HOUR

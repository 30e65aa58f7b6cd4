"""`vgpuctl schedule`: what a person sees of the coming shifts, and of the faults of timetables."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.files import read_timetable
from tests.support.paths import ROOT
from vgpuctl.cli.app import app
from vgpuctl.cli.lazy import build_command
from vgpuctl.model.profiles import Catalogue, Profile
from vgpuctl.reporting.profiles_check import Severity
from vgpuctl.reporting.timetable_check import check_timetable

PROFILES = """\
version: 1
profiles: {small: grid_v100-4q, whole: grid_v100-16q}
workers: {"worker-[1-4]": small, worker-5: whole}
"""
TIMETABLE = """\
version: 1
timezone: Europe/Berlin
except:
  - {dates: 2025-12-24..2025-12-26, shift: day}
shifts:
  day: {starts: "0 8 * * *", profiles: small}
  night: {starts: "0 20 * * *", profiles: whole}
"""
KNOWN = Catalogue({"small": Profile("small", ("grid_v100-4q",)), "whole": Profile("whole", ("grid_v100-16q",))})
NOW = datetime(2026, 11, 20, 13, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "schedules").mkdir()
    (tmp_path / "profiles.yaml").write_text(PROFILES)
    (tmp_path / "schedules" / "day-night.yaml").write_text(TIMETABLE)
    for name in ("VGPUCTL_PROFILES", "VGPUCTL_SCHEDULES", "VGPUCTL_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        build_command(app)(["schedule", *arguments])
    return int(ended.value.code or 0)


def test_the_coming_shifts_are_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("next", "--from", "2025-12-23", "--days", "4") == 0
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "TIMETABLE  SHIFT  FROM              UNTIL",
        "day-night  night  Mon 22 Dec 20:00  Tue 23 Dec 08:00",
        "day-night  day    Tue 23 Dec 08:00  Tue 23 Dec 20:00",
        "day-night  night  Tue 23 Dec 20:00  Wed 24 Dec 08:00",
        "day-night  day    Wed 24 Dec 08:00  Sat 27 Dec 20:00  2025-12-24..2025-12-26 stays in day",
        "Times are those of Europe/Berlin.",
    ]


def test_what_is_in_force_comes_first_in_the_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("next", "--from", "2025-12-23T09:00", "--days", "1", "--zone", "America/New_York", "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [(item["shift"], item["start"], item["end"], item["why"]) for item in document["items"]] == [
        ("day", "2025-12-23T08:00:00+01:00", "2025-12-23T20:00:00+01:00", None),
        ("night", "2025-12-23T20:00:00+01:00", "2025-12-24T08:00:00+01:00", None),
        ("day", "2025-12-24T08:00:00+01:00", "2025-12-27T20:00:00+01:00", "2025-12-24..2025-12-26 stays in day"),
    ]


def test_an_early_begin_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fixed one as a time, also across a change of the clocks. An automatic one depends on the history."""
    text = without_dates().replace("small}", "small, early: 6.5h}")
    (folder / "schedules" / "day-night.yaml").write_text(text.replace("whole}", "whole, early: auto}"))
    assert run("next", "--from", "2025-10-25T21:00", "--days", "1", "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [(item["shift"], item["start"], item["begins"]) for item in document["items"]] == [
        ("night", "2025-10-25T20:00:00+02:00", None),
        ("day", "2025-10-26T08:00:00+01:00", "2025-10-26T02:30:00+02:00"),
        ("night", "2025-10-26T20:00:00+01:00", None),
    ]
    assert run("next", "--from", "2025-10-27T09:00", "--days", "1") == 0
    notes = [line.partition("  begins")[2].strip() for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert notes == ["6 h 30 min early", "early enough to be ready", "6 h 30 min early"]


def test_the_days_are_a_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("preview", "--from", "2025-12-23", "--days", "3") == 0
    head, hours, *days = capsys.readouterr().out.splitlines()
    assert head.startswith("day-night · █ day · ▒ night")
    assert hours == "Europe/Berlin   00    03    06    09    12    15    18    21    24"
    assert days == [
        "Tue 23 Dec      " + "▒" * 16 + "█" * 24 + "▒" * 8,
        "Wed 24 Dec      " + "▒" * 16 + "█" * 32 + "  stays in day",
        "Thu 25 Dec      " + "█" * 48 + "  stays in day",
    ]


def test_a_change_of_the_clocks_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for begin, told in (("2025-03-30", "02:00–03:00 are skipped"), ("2025-10-26", "02:00–03:00 come twice")):
        assert run("preview", "--from", begin, "--days", "1") == 0
        assert capsys.readouterr().out.splitlines()[-1].endswith(told)


def test_the_picture_is_drawn(folder: Path) -> None:
    assert run("preview", "--from", "2025-12-23", "--days", "3", "--svg", "week.svg") == 0
    text = (folder / "week.svg").read_text()
    drawn = [element for element in ElementTree.fromstring(text).iter() if element.tag.endswith("rect")]
    assert len(drawn) == 1 + 3 + 2 + 1, "the paper, and the bars of each day"
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("next", "--zone", "Asia/Kolkat"), "There is no time zone Asia/Kolkat; did you mean Asia/Kolkata?"),
        (("next", "--from", "soon"), "'soon' is not a time."),
        (("next", "--from", "9999-12-31"), "'9999-12-31' is not between the years 1970 and 9000."),
        (("preview", "--svg", "nowhere/week.svg"), "nowhere/week.svg cannot be written: No such file or directory."),
        (("next", "--timetable", "day-nigt"), "No timetable is called day-nigt; did you mean day-night?"),
        (("preview", "--days", "0"), "greater than or equal to 1"),
    ],
)
def test_what_makes_no_sense_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    assert run(*arguments) == 2
    assert told in capsys.readouterr().err


CHECKED = {
    "equal-starts": TIMETABLE.partition("shifts:\n  ")[2].replace('"0 20 * * *"', '["0 8 * * 1", "0 20 * * *"]'),
    "never-reached": TIMETABLE.partition("shifts:\n  ")[2].replace("small", "small, until: 2026-01-01"),
    "contradicting-dates": TIMETABLE.partition("shifts:\n  ")[2]
    + "except: [{dates: 2026-05-01..2026-05-03, shift: day}, {dates: 2026-05-03, shift: night}]",
    "is-over": TIMETABLE.partition("shifts:\n  ")[2] + "until: 2026-11-19",
    "early-too-long": TIMETABLE.partition("shifts:\n  ")[2].replace("small", "small, early: 12h"),
    "min-run-too-long": TIMETABLE.partition("shifts:\n  ")[2].replace("whole", "whole, min_run: 14h"),
    "never-skipped": TIMETABLE.partition("shifts:\n  ")[2].replace("whole", "whole, skip_after: 13h"),
}


@pytest.mark.parametrize("kind", CHECKED)
def test_each_fault_of_a_timetable_is_found(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "faulty.yaml"
    path.write_text(f"version: 1\ntimezone: Europe/Berlin\nshifts:\n  {CHECKED[kind]}\n")
    assert [finding.kind for finding in check_timetable(read_timetable(path, KNOWN), NOW)] == [kind]
    page = (ROOT / "docs" / "how-to" / "timetables.md").read_text()
    assert f"| `{kind}` |" in page


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("min_run: 13h", []),
        ("min_run: 14h", ["min_run is 14 h, but night lasts 13 h at most; so it is never begun"]),
        ("skip_after: 12h", []),
        ("skip_after: 780m", ["skip_after is 13 h, but night lasts 13 h at most; so no start of it is ever skipped"]),
        ("early: 11h", []),
        ("early: auto", []),
        ("early: 690m", ["night begins 11 h 30 min early, but day before it lasts 11 h 30 min, until Sun 28 Mar 2027"]),
    ],
)
def test_durations_are_compared_with_how_long_shifts_really_last(text: str, told: list[str], tmp_path: Path) -> None:
    """The night in which the clocks go back lasts 13 hours. One day begins at 08:30."""
    path = tmp_path / "clocks.yaml"
    day = '["30 8 28 3 *", "0 8 * 1-2,4-12 *", "0 8 1-27,29-31 3 *"]'
    shifts = f'night: {{starts: "0 20 * * *", {text}}}\n  day: {{starts: {day}}}'
    path.write_text(f"version: 1\ntimezone: Europe/Berlin\nshifts:\n  {shifts}\n")
    assert [
        finding.what.removesuffix(" 20:00") for finding in check_timetable(read_timetable(path, KNOWN), NOW)
    ] == told


def test_a_leap_day_and_a_busy_shift_are_no_faults(tmp_path: Path) -> None:
    path = tmp_path / "fine.yaml"
    path.write_text(
        "version: 1\ntimezone: UTC\nshifts:\n  busy: {starts: '* * * * *', profiles: small}\n"
        "  night: {starts: '0 20 29 2 *', profiles: whole}\n"
    )
    found = list(check_timetable(read_timetable(path, KNOWN), NOW))
    assert [(finding.kind, finding.severity) for finding in found] == [("never-reached", Severity.WARNING)]


def without_dates() -> str:
    before, _, after = TIMETABLE.partition("except:")
    return before + after[after.index("shifts:") :]


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("  rare: {starts: '0 0 30 2 *', profiles: small}", "is not a cron line: Bad day-of-month"),
        ("except: {dates: 2026-12-24}", "must be a list of entries"),
        ("except: [{dates: 2026-12-24, shift: dya}]", "there is no shift dya; did you mean day?"),
        ("except: [{dates: '2026-02-30', shift: day}]", "is not a date such as 2026-12-24"),
        ("except: [{dates: 2026-12-26..2026-12-24, shift: day}]", "ends before it begins"),
        ("except: [{dates: 2026-12-26..2036-12-24, shift: day}]", "is longer than 400 days"),
        ("except: [{shift: day}]", "needs dates"),
        ("from: tomorrow", "'tomorrow' is not a date"),
        ("until: 9999-12-31", "is not a date such as 2026-12-24"),
        ("from: 2026-12-24\nuntil: 2026-12-23", "is before 2026-12-24"),
    ],
)
def test_a_wrong_date_is_refused_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str], key: str, told: str
) -> None:
    (folder / "schedules" / "day-night.yaml").write_text(without_dates() + key + "\n")
    assert run("check") == 2
    said = capsys.readouterr().err
    assert told in " ".join(said.split())
    assert "line " in said


def test_errors_end_with_3_and_warnings_with_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "schedules" / "day-night.yaml"
    assert run("check") == 0
    assert capsys.readouterr().out == "No problems in 2 profiles, 1 timetable; vCenter was not asked.\n"
    path.write_text(TIMETABLE + "until: 2025-12-31\n")
    assert run("check") == 0
    assert "warning: day-night has not counted since 2025-12-31" in " ".join(capsys.readouterr().out.split())
    path.write_text(TIMETABLE.replace("0 20", "0 8"))
    assert run("check", "-o", "json") == 3
    assert json.loads(capsys.readouterr().out)["errors"] == 1

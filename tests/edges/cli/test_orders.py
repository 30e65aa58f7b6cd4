"""Orders of people: what each command writes into the cluster, says, and refuses. vCenter is not asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.here import Said, vgpuctl
from vgpuctl.cli.acting import ordering
from vgpuctl.kube.order_book import OrderBook
from vgpuctl.model.ledger import Entry, Ledger, key_of
from vgpuctl.model.orders import Maintenance, Override, Pause
from vgpuctl.model.outcome import Outcome
from vgpuctl.settings import Flags, kubernetes_settings
from vgpuctl.testing import Estate

#: Friday noon in Berlin: the day shift since 08:00, the night from 20:00.
ZONE = "Europe/Berlin"
NOON = datetime(2026, 11, 20, 11, tzinfo=UTC)
MORNING, EVENING = NOON.replace(hour=7), NOON.replace(hour=19)


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with Estate(tmp_path_factory.mktemp("orders") / "estate", "by-day") as estate:
        yield estate


class Desk:
    """A person with a shell, at a moment that the test chooses."""

    def __init__(self, estate: Estate, folder: Path, at: Callable[[datetime], None]) -> None:
        self.estate, self.at = estate, at
        self.env = {**estate.environment(), "HOME": str(folder), "TZ": ZONE}
        self.book = OrderBook.open(kubernetes_settings(Flags(), self.env), lambda _: None)

    def vgpuctl(self, *words: str) -> Said:
        return vgpuctl(self.env, *words)

    def says(self, *words: str) -> str:
        ran = self.vgpuctl(*words)
        assert (ran.code, ran.err) == (0, "")
        return ran.out.strip()

    def json(self, *words: str) -> Any:
        return json.loads(self.says(*words, "-o", "json"))

    def refuses(self, *words: str) -> str:
        ran = self.vgpuctl(*words)
        assert (ran.code, ran.out) == (2, "")
        return ran.err.strip()

    def given(self, *entries: Entry) -> None:
        self.book.write({key_of(entry): entry for entry in entries})

    @property
    def ledger(self) -> Ledger:
        return self.book.read()


@pytest.fixture
def desk(estate: Estate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    estate.reset()
    moments = [NOON]
    for name in ("override", "pause", "unpark", "maintenance"):
        monkeypatch.setattr(f"vgpuctl.cli.acting.{name}.this_second", lambda: moments[-1])
    monkeypatch.setenv("TZ", ZONE)
    time.tzset()
    yield Desk(estate, tmp_path, moments.append)
    monkeypatch.undo()
    time.tzset()


def night(**changes: Any) -> Override:
    order = Override(who="bert", since=NOON - timedelta(hours=1), timetable="day-night", shift="night", until=EVENING)
    return replace(order, **changes)


def test_an_override_is_kept_with_who_why_and_until_when(desk: Desk) -> None:
    said = desk.says("override", "night", "--for", "2h", "--reason", "a demo\nfor guests")
    who = desk.book.who()
    assert said == f"night on day-night until 14:00, by {who}. The daemon takes it up within seconds."
    assert dict(desk.ledger.orders.overrides) == {
        "day-night": Override(
            who=who,
            since=NOON,
            until=NOON + timedelta(hours=2),
            reason="a demo for guests",
            timetable="day-night",
            shift="night",
        )
    }
    assert desk.estate.calls().get("vcenter", {}) == {}


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (("night",), EVENING),
        (("night", "--until", "13:30"), NOON + timedelta(minutes=90)),
        (("night", "--until", "2026-11-21T08:00:00+01:00"), NOON.replace(day=21, hour=7)),
        (("day", "--until", "23:00"), NOON + timedelta(hours=11)),
        (("day", "--for", "90s"), NOON + timedelta(seconds=90)),
    ],
)
def test_an_override_ends_when_it_is_told_or_at_the_next_start(
    desk: Desk, words: tuple[str, ...], ends: datetime
) -> None:
    document = desk.json("override", *words)
    assert document["until"] == ends.isoformat()
    assert document == {
        "apiVersion": "vgpuctl.io/v1",
        "kind": "Override",
        "timetable": "day-night",
        "shift": words[0],
        "who": desk.book.who(),
        "since": NOON.isoformat(),
        "until": ends.isoformat(),
        "reason": None,
    }


def test_a_timetable_without_a_further_start_is_overridden_until_it_is_cleared(desk: Desk, tmp_path: Path) -> None:
    written = (desk.estate.folder / "schedules" / "day-night.yaml").read_text()
    (tmp_path / "schedules").mkdir()
    (tmp_path / "schedules" / "day-night.yaml").write_text(f"{written}\nuntil: 2026-11-20\n")
    desk.env |= {"VGPUCTL_SCHEDULES": str(tmp_path / "schedules")}
    desk.at(NOON + timedelta(hours=10))
    said = desk.says("override", "day")
    assert "by " in said
    assert "until it is cleared: the timetable has no further start. " in said
    assert desk.ledger.orders.overrides["day-night"].until is None


def test_an_override_replaces_another_and_says_whose(desk: Desk) -> None:
    desk.given(night(until=None))
    assert "It replaces night, ordered by bert. " in desk.says("override", "day", "--for", "1h")
    assert desk.ledger.orders.overrides["day-night"].shift == "day"


def test_the_shift_of_the_hour_needs_no_override_unless_it_is_to_stay(desk: Desk) -> None:
    said = desk.refuses("override", "day")
    assert said == (
        "Error: It is day on day-night by the timetable already.\n"
        "Hint: To keep it through the next start, say how long: --for 2h, or --until 06:00."
    )
    assert desk.ledger.orders.overrides == {}
    desk.given(night())
    assert desk.says("override", "day") == (
        "The override by bert, night on day-night, has ended. By the timetable it is day until 20:00. "
        "The daemon takes it up within seconds."
    )


def test_a_cleared_override_is_kept_as_ended_because_its_end_counts_as_a_start(desk: Desk) -> None:
    desk.given(night())
    assert "By the timetable it is day until 20:00." in desk.says("override", "clear")
    assert dict(desk.ledger.orders.overrides) == {"day-night": night(until=NOON)}
    assert not desk.ledger.orders.overrides["day-night"].active(NOON)
    assert desk.refuses("override", "clear").startswith("Error: No override is in force.")


def test_of_several_overrides_one_must_be_chosen(desk: Desk) -> None:
    desk.given(night(), night(timetable="training"))
    assert "Choose one with --timetable NAME." in desk.refuses("override", "clear")
    assert "There is one on day-night, training." in desk.refuses("override", "clear", "--timetable", "other")
    assert "No file has this timetable any more." in desk.says("override", "clear", "--timetable", "training")
    assert [each.active(NOON) for each in desk.ledger.orders.overrides.values()] == [True, False]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("override", "nigth"), "No timetable has a shift nigth; did you mean night?"),
        (("override", "night", "--for", "0"), "--for 0 would end at once."),
        (("override", "night", "--for", "soon"), "--for soon is not a duration such as 90s, 10m or 1h."),
        (("override", "night", "--for", "999999999h"), "--for 999999999h is longer than vgpuctl can count."),
        (("override", "night", "--for", "2h", "--until", "18:00"), "--for and --until both say when it ends."),
        (("override", "night", "--until", "2026-11-20 11:59"), "--until 2026-11-20 11:59 is over already."),
        (("override", "night", "--until", "tomorrow"), "--until tomorrow is not a time."),
        (("override", "night", "--timetable", "weekend"), "No timetable is called weekend."),
        (("override", "clear", "--for", "2h"), "`override clear` takes no --for, --until or --reason."),
        (("override", "night", "--reason", "x" * 401), "--reason has more than 400 characters."),
        (("pause", "--until", "25:00"), "--until 25:00 is not a time."),
        (("unpause",), "The daemon is not paused."),
        (("unpark", "esx-1"), "esx-1 is not parked."),
        (("unpark", "esx-[1"), "'esx-[1' is not a host's name, a range such as esx-[1-4], or a glob such as 'esx-*'."),
        (("maintenance", "exit", "esx-1"), "No host is under maintenance."),
        (("maintenance", "exit"), "Name hosts, or give --all."),
        (("maintenance", "enter", "esx-1", "--all"), "Name hosts, or give --all, but not both."),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(desk: Desk, words: tuple[str, ...], why: str) -> None:
    desk.estate.calls()
    assert desk.refuses(*words).startswith(f"Error: {why}")
    assert not any(call.startswith(("PATCH", "POST configmaps")) for call in desk.estate.calls().get("kubernetes", {}))


def test_a_pause_is_kept_until_its_end_or_until_it_is_taken_back(desk: Desk) -> None:
    who = desk.book.who()
    assert desk.says("pause", "--until", "18:00", "--reason", "storage works") == (
        f"Paused until 18:00, by {who}. A switch that runs is finished, and nothing begins."
    )
    ends = NOON + timedelta(hours=6)
    assert desk.ledger.orders.pause == Pause(who=who, since=NOON, until=ends, reason="storage works")
    assert desk.json("pause", "--now")["atOnce"] is True
    pause = desk.ledger.orders.pause
    assert pause is not None
    assert (pause.at_once, pause.until) == (True, None)
    assert desk.says("unpause").startswith(f"The pause by {who} has ended. ")
    assert desk.ledger.orders.pause is None


def test_an_order_during_a_pause_says_that_it_waits(desk: Desk) -> None:
    desk.given(Pause(who="bert", since=MORNING, until=NOON + timedelta(hours=6)))
    said = desk.says("override", "night")
    assert said.endswith("The daemon takes it up after the pause until 18:00, by bert.")


def parked(host: str, **changes: Any) -> Outcome:
    outcome = Outcome(
        timetable="day-night",
        host=host,
        shift="day",
        start=MORNING,
        tries=3,
        parked=True,
        why="worker-1 did not come back in 15 min.",
        code="VG301",
    )
    return replace(outcome, **changes)


def test_a_parked_host_is_tried_again_once_a_person_says_so(desk: Desk) -> None:
    desk.given(parked("esx-1"), parked("esx-2"), parked("esx-3", start=MORNING - timedelta(days=1)))
    assert "Parked: esx-1 esx-2." in desk.refuses("unpark", "esx-3")
    assert desk.says("unpark", "esx-1").splitlines() == [
        "esx-1 is no longer parked. day on day-night had failed 3 times: worker-1 did not come back in 15 min (VG301).",
        "The daemon takes it up within seconds.",
    ]
    assert {host for _, host in desk.ledger.outcomes} == {"esx-2", "esx-3"}
    assert [each["host"] for each in desk.json("unpark", "esx-*")["items"]] == ["esx-2"]


def test_an_outcome_of_an_ended_overrides_start_is_no_longer_of_the_start_that_is_due(desk: Desk) -> None:
    desk.given(parked("esx-1"), night(until=NOON - timedelta(minutes=5)))
    assert "esx-1 is not parked." in desk.refuses("unpark", "esx-1")


def test_hosts_are_given_back(desk: Desk) -> None:
    held = [Maintenance(who="bert", since=MORNING, host=f"esx-{number}") for number in (1, 2, 3)]
    desk.given(*held, Maintenance(who="bert", since=MORNING, until=NOON, host="esx-4"))
    assert "Under maintenance: esx-[1-3]." in desk.refuses("maintenance", "exit", "esx-4")
    assert desk.says("maintenance", "exit", "esx-1").startswith("esx-1 is no longer under maintenance. ")
    assert [each["host"] for each in desk.json("maintenance", "exit", "--all")["items"]] == ["esx-2", "esx-3"]
    assert set(desk.ledger.orders.maintenance) == {"esx-4"}


def test_an_order_begins_at_a_full_second() -> None:
    assert ordering.this_second().microsecond == 0


def rows(desk: Desk, *words: str) -> list[tuple[str, str, str | None, str | None]]:
    items = desk.json("schedule", "next", "--days", "1", "--zone", ZONE, "--from", "2026-11-20T12:00", *words)["items"]
    return [(each["shift"], each["start"][8:16], each["end"] and each["end"][8:16], each["why"]) for each in items]


def test_the_coming_shifts_show_an_override_only_if_the_cluster_is_asked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = type("Clock", (datetime,), {"now": classmethod(lambda _, zone: NOON.astimezone(zone))})
    monkeypatch.setattr("vgpuctl.cli.showing.schedule.datetime", clock)
    desk.env["COLUMNS"] = "200"
    desk.given(night(who="anna", reason="demo", since=NOON, until=EVENING + timedelta(hours=14)))
    desk.estate.calls()
    assert [shift for shift, *_ in rows(desk)] == ["day", "night", "day"]
    assert desk.estate.calls() == {}
    assert rows(desk, "--live") == [
        ("night", "20T12:00", "21T10:00", "override by anna: demo"),
        ("day", "21T10:00", "21T20:00", None),
    ]
    assert desk.estate.calls().get("vcenter", {}) == {}
    assert "override by anna: demo" in desk.says("schedule", "next", "--live")
    assert "day-night" in desk.says("schedule", "preview", "--live")


def power(desk: Desk, name: str) -> str:
    return desk.estate.within(lambda world: str(world.estate.vms[name].power.value))


def test_entering_maintenance_holds_the_host_first_and_then_turns_its_sleepers_off(desk: Desk) -> None:
    assert desk.vgpuctl("switch", "night", "--yes").code == 0
    assert power(desk, "worker-1") == "suspended"
    who = desk.book.who()
    shown = desk.says("maintenance", "enter", "esx-1", "--dry-run")
    assert "discard the suspended state" in shown
    assert shown.endswith("Nothing was changed.")
    assert desk.ledger.orders.maintenance == {}
    ends = NOON + timedelta(hours=6)
    said = desk.says("maintenance", "enter", "esx-1", "--until", "18:00", "--reason", "ESXi update").splitlines()
    assert said[0] == f"esx-1 is under maintenance until 18:00, by {who}. No shift moves anything there."
    assert said[-3:] == [
        "4 sleeping workers are really off now.",
        "worker-5 still runs on esx-1: move or stop it before the patch.",
        "Afterwards: vgpuctl maintenance exit esx-1",
    ]
    held = Maintenance(who=who, since=NOON, until=ends, reason="ESXi update", host="esx-1")
    assert dict(desk.ledger.orders.maintenance) == {"esx-1": held}
    assert {power(desk, f"worker-{n}") for n in (1, 2, 3, 4)} == {"poweredOff"}
    again = desk.json("maintenance", "enter", "--all")
    assert (again["exitCode"], [each["host"] for each in again["maintenance"]]) == (0, ["esx-1"])


def test_pods_on_a_suspended_worker_are_named_and_need_a_yes(desk: Desk) -> None:
    """A person suspended it without a drain, so what ran there is lost with the state."""
    desk.estate.person("suspend worker-1")
    ran = desk.vgpuctl("maintenance", "enter", "esx-1")
    assert ran.code == 2
    assert "was on it when it was suspended, and is lost with the suspended state" in ran.out
    assert "Nothing was changed." in ran.err
    assert (desk.ledger.orders.maintenance, power(desk, "worker-1")) == ({}, "suspended")
    document = desk.json("maintenance", "enter", "esx-1", "--yes")
    assert (document["wish"], document["exitCode"]) == ("maintenance", 0)
    assert [(step["worker"], step["step"]) for step in document["steps"]] == [("worker-1", "Discard")]
    assert power(desk, "worker-1") == "poweredOff"


def test_a_host_stays_held_if_a_state_cannot_be_discarded_and_the_command_can_be_repeated(desk: Desk) -> None:
    assert desk.vgpuctl("switch", "night", "--yes").code == 0
    desk.estate.fault("PowerOffVM_Task", "fail", "NotSupported")
    ran = desk.vgpuctl("maintenance", "enter", "esx-1")
    assert ran.code == 1
    print(ran.err)
    assert ran.err.splitlines()[-1] == (
        "The hosts are held all the same, but not all suspended states are discarded. Then run the same command again."
    )
    assert set(desk.ledger.orders.maintenance) == {"esx-1"}
    desk.estate.clear_faults()
    assert "really off now." in desk.says("maintenance", "enter", "esx-1")


def test_a_held_sleeper_keeps_its_state_unless_the_person_says_otherwise(desk: Desk) -> None:
    assert desk.vgpuctl("switch", "night", "--yes").code == 0
    assert desk.vgpuctl("hold", "worker-1").code == 0
    ran = desk.vgpuctl("maintenance", "enter", "esx-1")
    assert ran.code == 3
    assert "VG117" in ran.err
    assert "The hosts are held all the same, but not all suspended states are discarded." in ran.err
    assert "Nothing was changed" not in ran.err
    assert (set(desk.ledger.orders.maintenance), power(desk, "worker-1")) == ({"esx-1"}, "suspended")
    assert desk.vgpuctl("maintenance", "enter", "esx-1", "--include-held").code == 0
    assert power(desk, "worker-1") == "poweredOff"


def test_an_unknown_host_is_named_with_the_known_ones(desk: Desk) -> None:
    said = desk.refuses("maintenance", "enter", "esx-9")
    assert said == (
        "Error: esx-9 is not a host with cards or workers of ours.\nHint: Hosts with cards or workers: esx-1."
    )

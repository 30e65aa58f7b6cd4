"""`vgpuctl hold` and `unhold`: what they write on nodes, and what a person reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.lab import Lab
from vgpuctl.cli.selection import end_of_order
from vgpuctl.model.errors import UsageError
from vgpuctl.model.hold import HOLD_ANNOTATIONS

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def standing(by_day: Lab) -> Iterator[Lab]:
    """The standing lab, without holds after the test."""
    try:
        yield by_day
    finally:
        by_day.kubectl("annotate", "nodes", "--all", *(f"{key}-" for key in HOLD_ANNOTATIONS)).ok()


def held(lab: Lab) -> dict[str, dict[str, str]]:
    """The annotations of holds, by the names of nodes."""
    annotations = {name: node["metadata"].get("annotations", {}) for name, node in lab.nodes().items()}
    found = {name: {key: each[key] for key in HOLD_ANNOTATIONS if key in each} for name, each in annotations.items()}
    return {name: each for name, each in found.items() if each}


def test_a_hold_says_by_whom_until_when_and_why_and_nothing_else_is_written(standing: Lab) -> None:
    before = standing.nodes()["worker-1"]
    user = json.loads(standing.kubectl("auth", "whoami", "-o", "json").ok().out)["status"]["userInfo"]["username"]
    ran = standing.vgpuctl("hold", "worker-1", "--until", "2099-01-31T08:00:00Z", "--reason", "driver test").ok()
    assert ran.out == f"worker-1 is held by {user} until {_local('2099-01-31T08:00:00Z')} (driver test).\n"
    found = held(standing)
    assert set(found) == {"worker-1"}
    since = found["worker-1"].pop("vgpuctl.io/hold-since")
    assert timedelta() <= datetime.now(UTC) - datetime.fromisoformat(since) < timedelta(minutes=1)
    assert found["worker-1"] == {
        "vgpuctl.io/hold": "true",
        "vgpuctl.io/hold-by": user,
        "vgpuctl.io/hold-until": "2099-01-31T08:00:00Z",
        "vgpuctl.io/hold-why": "driver test",
    }
    after = standing.nodes()["worker-1"]
    assert (after["spec"], after["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"])
    shown = standing.status()["worker-1"]["hold"]
    assert (shown["by"], shown["until"], shown["reason"]) == (user, "2099-01-31T08:00:00+00:00", "driver test")
    assert standing.vgpuctl("hold", "worker-1").ok().out == f"worker-1 is held by {user}.\n"
    assert set(held(standing)["worker-1"]) == {"vgpuctl.io/hold", "vgpuctl.io/hold-by", "vgpuctl.io/hold-since"}
    assert standing.vgpuctl("unhold", "worker-[1-2]").ok().out == (
        "worker-1 is no longer held.\nworker-2 was not held.\n"
    )
    assert held(standing) == {}


def _local(moment: str) -> str:
    at = datetime.fromisoformat(moment).astimezone()
    return f"{at.day} {at:%b %H:%M}"


def test_a_switch_refuses_what_would_move_until_it_is_included_or_the_hold_ends(standing: Lab) -> None:
    standing.kubectl("annotate", "node", "worker-1", "vgpuctl.io/hold=true").ok()
    refused = standing.vgpuctl("switch", "night", "--yes")
    assert refused.code == 3
    assert "worker-1 is held." in refused.err
    assert "vgpuctl explain VG117" in refused.err
    assert standing.vgpuctl("switch", "night", "--dry-run", "--include-held").code == 0
    assert standing.vgpuctl("provision", "--profile", "none", "worker-1", "--dry-run").code == 3
    assert standing.vgpuctl("provision", "--profile", "none", "worker-1", "--dry-run", "--include-held").code == 0
    standing.kubectl("annotate", "node", "worker-1", "vgpuctl.io/hold-until=2026-01-01T00:00:00Z").ok()
    assert standing.vgpuctl("switch", "night", "--dry-run").code == 0


def test_a_host_means_the_workers_on_it_and_all_means_all_that_are_held(standing: Lab) -> None:
    host = standing.status()["worker-1"]["host"]
    document = json.loads(standing.vgpuctl("hold", host, "--for", "2h", "-o", "json").ok().out)
    assert (document["kind"], {each["host"] for each in document["workers"]}) == ("Holds", {host})
    assert {each["name"] for each in document["workers"]} == set(held(standing)) == set(standing.status())
    until = datetime.fromisoformat(document["workers"][0]["hold"]["until"])
    assert timedelta(minutes=119) < until - datetime.now(UTC) <= timedelta(hours=2)
    assert standing.vgpuctl("unhold", "--all", "--dry-run").ok().out == (
        "worker-[1-5] are no longer held.\nNothing was changed.\n"
    )
    assert set(held(standing)) == set(standing.status())
    standing.vgpuctl("unhold", "--all").ok()
    assert held(standing) == {}
    assert standing.vgpuctl("unhold", "--all").ok().out == "No worker is held.\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("hold", "worker-1", "worker-77"), "No worker or host is called worker-77"),
        (("hold", "worker-1", "--until", "soon"), "--until soon is not a time. Hint: Write a time such as 18:00"),
        (("unhold",), "unhold needs the names of workers or hosts, or --all"),
        (("unhold", "worker-1", "--all"), "unhold needs the names of workers or hosts, or --all"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(by_day: Lab, words: tuple[str, ...], told: str) -> None:
    ran = by_day.vgpuctl(*words)
    assert ran.code == 2
    assert told in " ".join(ran.err.split())
    assert held(by_day) == {}


@pytest.mark.parametrize(
    ("until", "lasting", "end"),
    [
        (None, None, None),
        (None, "90m", NOW + timedelta(minutes=90)),
        ("2026-11-20T12:00:01Z", None, NOW + timedelta(seconds=1)),
    ],
)
def test_an_order_ends_at_a_time_after_a_time_or_never(
    until: str | None, lasting: str | None, end: datetime | None
) -> None:
    assert end_of_order(until, lasting, NOW) == end


@pytest.mark.parametrize(
    ("until", "lasting"),
    [
        ("18:00", "2h"),
        ("2026-11-20T12:00:00Z", None),
        ("2020-01-01 08:00", None),
        ("never", None),
        (None, "0s"),
        (None, "999999999h"),
        (None, "long"),
    ],
)
def test_an_end_that_is_no_coming_time_is_refused(until: str | None, lasting: str | None) -> None:
    with pytest.raises(UsageError):
        end_of_order(until, lasting, NOW)

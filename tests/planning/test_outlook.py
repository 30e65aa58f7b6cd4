"""Ahead of a shift, people are told what is in its way, and when that has changed; and nothing otherwise."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.fleets import budget, day_and_night, night_wish, node, pod, with_node, with_worker
from tests.support.past import night, past_step
from vgpuctl.model.conduct import Conduct, OnStuck
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.journal import Entry
from vgpuctl.model.past_pods import PastPods
from vgpuctl.model.places import Needs
from vgpuctl.model.pods import Budget, Pod
from vgpuctl.model.selectors import Selector
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.operations import look_ahead, with_history
from vgpuctl.reporting.notices import MOST, outlook_notices
from vgpuctl.reporting.outlook import Coming, News, Outlook, news, outlook

AT_8 = datetime(2026, 1, 5, 20, 0, tzinfo=UTC)
TONIGHT = Coming(timetable="day-night", shift="night", start=AT_8, end=AT_8 + timedelta(hours=12))
BY_DAY, _ = day_and_night()
NIGHT = "night on day-night (20:00)"


def ahead(some: Fleet, coming: Coming = TONIGHT, *entries: Entry, **more: Any) -> Outlook:
    return outlook(with_history(look_ahead(some, night_wish(some, **more)), entries), coming)


def told(before: Outlook | None, now: Outlook) -> list[str]:
    return [each.message for each in news(before, now)]


def holding(name: str, *pods: Pod, some: Fleet = BY_DAY) -> Fleet:
    return with_node(some, name, pods=pods)


BARE = holding("worker-3", pod("anna", owner=None))
SLOW = holding("worker-3", pod("model", grace_s=3600, owner="Job/model"))
SPENT = replace(holding("worker-3", pod("web-1", labels={"app": "web"})), budgets=(budget("web", 0, app="web"),))


def test_at_first_its_length_is_told_and_nothing_else_while_all_stays_well() -> None:
    fits = ahead(BY_DAY)
    assert told(None, fits) == [f"Nothing is in the way of {NIGHT}. It will take about 1 min 41 s."]
    assert told(fits, ahead(BY_DAY)) == []


def test_a_switch_with_nothing_to_do_is_no_news() -> None:
    at_night = with_worker(BY_DAY, "worker-5", power=Power.ON)
    for number in range(1, 5):
        at_night = with_worker(at_night, f"worker-{number}", power=Power.OFF)
    assert told(None, ahead(at_night)) == []


@pytest.mark.parametrize(
    ("some", "message", "better"),
    [
        (
            BARE,
            f"{NIGHT} will not begin on esx-1: worker-3 cannot be drained: 1 pod may not be deleted. anna has no"
            " controller that would replace it (allow it with force). Remove these pods, or allow it in the timetable's"
            " drain settings. If several budgets cover a pod, leave one.",
            f"{NIGHT} is no longer refused on esx-1.",
        ),
        (
            SLOW,
            f"{NIGHT} will not come on esx-1: worker-3 may need 1 h to drain, and has 10 min. Shorten the grace of its"
            " pods, or lengthen the drain's timeout.",
            f"{NIGHT} leaves worker-3 enough time to drain.",
        ),
        (
            SPENT,
            f"{NIGHT} may be held up: budget web lets no pod go now, and web-1 on worker-3 must leave.",
            f"{NIGHT} is no longer held up by budget web.",
        ),
    ],
    ids=["a refusal", "a grace longer than the drain", "a spent budget"],
)
def test_what_is_in_the_way_is_told_once_and_when_it_is_gone(some: Fleet, message: str, better: str) -> None:
    fits, at_risk = ahead(BY_DAY), ahead(some)
    assert told(None, at_risk) == told(fits, at_risk) == [message]
    assert told(at_risk, ahead(some)) == []
    again = f"Nothing is in the way of {NIGHT} any more. It will take about 1 min 41 s."
    assert told(at_risk, fits) == [better, again]
    assert {(each.at_risk, "worker-3" in each.workers) for each in news(fits, at_risk)} == {(True, True)}
    assert not any(each.at_risk for each in news(at_risk, fits))


def test_a_shift_that_takes_longer_than_it_lasts_is_told() -> None:
    slow = night(steps=(past_step("PowerOn/worker-5", 0.0, 800.0),), pods=())
    short = replace(TONIGHT, end=AT_8 + timedelta(minutes=10))
    long = ahead(BY_DAY, short, slow)
    [message] = told(None, long)
    assert message == f"{NIGHT} takes about 14 min 56 s, and the next shift begins at 20:10."
    assert told(long, ahead(BY_DAY, short))[0] == f"{NIGHT} will be complete before 20:10."
    assert told(None, ahead(BY_DAY, replace(short, end=None), slow))[0].startswith("Nothing is in the way")


def test_one_of_two_refusals_of_a_host_goes_and_the_other_stays() -> None:
    both = holding("worker-2", pod("bert", owner=None), some=BARE)
    assert told(ahead(both), ahead(BARE)) == []
    assert ["worker-2" in message for message in told(ahead(BARE), ahead(both))] == [True]


def test_another_start_begins_anew() -> None:
    tomorrow = replace(TONIGHT, start=AT_8 + timedelta(days=1), end=None)
    assert told(ahead(BARE), ahead(BARE, tomorrow)) == told(None, ahead(BARE, tomorrow)) != []


def test_figures_that_move_are_no_news() -> None:
    slower = holding("worker-3", pod("model", grace_s=3700, owner="Job/model"))
    assert told(ahead(SLOW), ahead(slower)) == []


def test_a_pod_that_earlier_ended_in_time_is_no_risk() -> None:
    quick = night(pods=(PastPods(workload="default/Job/model", end_s=20.0, grace_s=3600.0),))
    assert not ahead(SLOW, TONIGHT, quick).risks


@pytest.mark.parametrize(
    ("more", "risky"),
    [
        ({"conduct": Conduct(on_stuck=OnStuck.WAIT)}, False),
        ({"conduct": Conduct(on_stuck=OnStuck.FORCE)}, True),
        ({"drain": DrainOptions(timeout_s=3600)}, False),
        ({"drain": DrainOptions(timeout_s=3599)}, True),
    ],
    ids=["it waits", "it is forced", "just in time", "just too late"],
)
def test_a_drain_is_late_by_its_own_deadline(more: dict[str, Any], risky: bool) -> None:
    assert bool(ahead(SLOW, TONIGHT, **more).risks) is risky


def test_a_budget_whose_pods_may_find_no_place_is_told_once_and_not_again_because_it_is_spent() -> None:
    web = pod("web-1", labels={"app": "web"}, needs=Needs(requests=(("cpu", 1000),)))
    limit = Budget(namespace="default", name="web", allowed=0, covers=Selector({"app": "web"}), desired=1, expected=2)
    full = node("infra-1", gives=(("cpu", 1000),), unschedulable=True)
    some = replace(holding("worker-3", web), budgets=(limit,), elsewhere=(full,))
    [message] = told(None, ahead(some))
    never = "worker-3 may never be drained: budget web keeps 1 of 2 pods, and places may not be found."
    assert message == f"{NIGHT} may be held up: {never}"


def test_a_suspend_that_needs_longer_than_it_may_take_is_told() -> None:
    large = with_worker(BY_DAY, "worker-1", memory_mib=2 * 1024 * 1024)
    [message] = told(None, ahead(large))
    assert message == f"{NIGHT} will not come on esx-1: worker-1 may need 1 h 9 min to suspend, and has 30 min."


def some_news(*workers: str, at_risk: bool) -> News:
    return News(message="something", workers=workers, at_risk=at_risk)


def test_news_become_events_on_the_nodes_that_they_concern() -> None:
    without = with_worker(BY_DAY, "worker-2", node=None)
    found = outlook_notices([some_news("worker-1", "worker-2", "gone", at_risk=True)], without)
    assert [(n.subject.kind, n.subject.name, n.reason, n.warning) for n in found] == [
        ("Node", "worker-1", "ShiftAtRisk", True)
    ]
    [fits] = outlook_notices([some_news("worker-1", at_risk=False)], BY_DAY)
    assert (fits.reason, fits.warning, fits.message) == ("ShiftFits", False, "something")


def test_a_large_estate_gets_no_more_events() -> None:
    many = [some_news("worker-1", "worker-3", at_risk=True)] * MOST
    assert len(outlook_notices(many, BY_DAY)) == MOST

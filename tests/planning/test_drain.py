"""Which pods a drain moves, leaves or refuses: kubectl's rules, for all and for single namespaces."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.files import read_timetable
from tests.support.fleets import budget, day_and_night, night_wish, pod, with_node
from vgpuctl.basics.names import overlap
from vgpuctl.model.errors import UsageError
from vgpuctl.model.pods import Pod
from vgpuctl.model.profiles import Catalogue, Profile
from vgpuctl.model.requests import SuspendVm
from vgpuctl.model.selectors import parse_selector
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.planning.checks.refusals import refusals
from vgpuctl.planning.planner import plan
from vgpuctl.planning.pods.drain import budgets_to_pay, must_leave, objection, within_s
from vgpuctl.planning.steps import Cordon, Drain, Suspend
from vgpuctl.reporting.waits import sentence

PLAIN = DrainOptions()
FORCED = DrainOptions(force=True, delete_emptydir_data=True)
DAEMON = {"owner": "DaemonSet/agent"}


def read(tmp_path: Path, **drain: Any) -> DrainOptions:
    path = tmp_path / "any.yaml"
    document = {"version": 1, "timezone": "UTC", "shifts": {"day": {"starts": "0 8 * * *"}}, "drain": drain}
    path.write_text(yaml.safe_dump(document))
    return read_timetable(path, Catalogue({"small": Profile("small", ("grid_v100-4q",))})).drain


def test_what_a_namespace_does_not_say_holds_for_it_as_for_all(tmp_path: Path) -> None:
    namespaces = {"notebooks": {"force": True, "timeout": "30m"}, "team-*": {"grace-period": 5}}
    drain = read(tmp_path, timeout="5m", **{"delete-emptydir-data": True}, namespaces=namespaces)
    assert drain.of("default") is drain
    assert drain.of("notebooks") == DrainOptions(timeout_s=1800, force=True, delete_emptydir_data=True)
    assert drain.of("team-a") == DrainOptions(timeout_s=300, grace_period_s=5, delete_emptydir_data=True)


def test_a_name_written_out_decides_against_globs(tmp_path: Path) -> None:
    drain = read(tmp_path, namespaces={"*": {"force": True}, "kube-system": {"force": False}})
    assert not drain.of("kube-system").force
    assert drain.of("any").force


@pytest.mark.parametrize(
    ("globs", "good"),
    [(("a-*", "b-*"), True), (("a-*", "*-b"), False), (("a?", "ab*"), False), (("a?", "abc*"), True)],
)
def test_globs_that_contradict_each_other_are_an_error(tmp_path: Path, globs: tuple[str, str], good: bool) -> None:
    one, other = globs
    assert read(tmp_path, namespaces={one: {"force": True}, other: {"force": True}})
    if good:
        assert read(tmp_path, namespaces={one: {"force": True}, other: {"timeout": 1}})
    else:
        with pytest.raises(UsageError, match="but has other options"):
            read(tmp_path, namespaces={one: {"force": True}, other: {"timeout": 1}})


GLOBS = st.text("ab*?", max_size=5)


@given(one=GLOBS, other=GLOBS)
def test_globs_overlap_where_some_name_fits_both(one: str, other: str) -> None:
    names = ["".join(letters) for length in range(9) for letters in _words(length)]
    assert overlap(one, other) == any(fnmatchcase(name, one) and fnmatchcase(name, other) for name in names)


def _words(length: int) -> list[str]:
    """Over two letters: with the globs above, a common name needs no third, and no more than eight of them."""
    return (
        [f"{number:0{length}b}".replace("0", "a").replace("1", "b") for number in range(2**length)] if length else [""]
    )


@pytest.mark.parametrize(
    ("one", "stays"),
    [
        (pod("p"), False),
        (pod("p", phase="Succeeded", owner=None), False),
        (pod("p", mirror=True, owner=None), True),
        (pod("p", **DAEMON), True),
        (pod("p", **DAEMON, phase="Failed"), False),
        (pod("p", **DAEMON, orphaned=True), False),
    ],
)
def test_who_stays_on_its_node(one: Pod, stays: bool) -> None:
    assert must_leave(one, PLAIN) is not stays


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (pod("p", **DAEMON, orphaned=True), "belongs to a DaemonSet/agent that is gone"),
        (pod("p", owner=None), "has no controller"),
        (pod("p", empty_dir=True), "keeps data in an emptyDir"),
    ],
)
def test_who_may_be_deleted_only_where_that_is_allowed(one: Pod, why: str) -> None:
    assert why in (objection(one, PLAIN) or "")
    assert objection(one, FORCED) is None
    assert objection(one, DrainOptions(namespaces={"default": FORCED})) is None
    assert objection(one, DrainOptions(namespaces={"other": FORCED})) is not None


def test_pods_that_are_not_selected_stay_and_are_expected_to() -> None:
    kept = pod("scratch", owner=None, labels={"app": "scratch"})
    by_day, _ = day_and_night()
    by_day = with_node(by_day, "worker-1", pods=(pod("notebook-1"), kept))
    wish = night_wish(by_day, DrainOptions(pod_selector=parse_selector("app!=scratch")))
    assert refusals(by_day, wish) == ()
    drained = plan(by_day, wish).applied_to(by_day, {Cordon.of("worker-1"), Drain.of("worker-1")})
    (suspend,) = plan(drained, wish).of("worker-1")[:1]
    assert isinstance(suspend, Suspend)
    (request,) = suspend.requests(drained, "now")
    assert isinstance(request, SuspendVm)
    assert request.first is not None
    assert request.first.expected == {kept.uid}


def test_a_pod_that_should_have_ended_long_ago_is_not_waited_for() -> None:
    stuck = pod("stuck", terminating=True, overdue_s=61)
    assert must_leave(stuck, PLAIN)
    assert must_leave(stuck, DrainOptions(skip_wait_for_delete_timeout_s=61))
    assert not must_leave(stuck, DrainOptions(skip_wait_for_delete_timeout_s=60))
    assert not must_leave(stuck, DrainOptions(namespaces={"default": DrainOptions(skip_wait_for_delete_timeout_s=60)}))


def test_a_drain_may_take_as_long_as_the_most_patient_of_its_pods() -> None:
    slow = DrainOptions(timeout_s=3600)
    options = DrainOptions(timeout_s=60, namespaces={"default": slow})
    by_day, _ = day_and_night()
    assert within_s(by_day.worker("worker-1"), options) == 3600
    assert within_s(with_node(by_day, "worker-1", pods=()).worker("worker-1"), options) == 60
    steps = plan(by_day, night_wish(by_day, options))
    assert {step.deadline_s for step in steps if isinstance(step, Drain)} == {3600}


def test_each_pod_goes_with_its_namespaces_grace() -> None:
    by_day, _ = day_and_night()
    by_day = with_node(by_day, "worker-1", pods=(pod("a"), pod("b", namespace="slow")))
    drain = Drain("worker-1", DrainOptions(grace_period_s=5, namespaces={"slow": DrainOptions(grace_period_s=60)}))
    assert {str(r.pod): r.grace_period_s for r in drain.requests(by_day, "now")} == {"a": 5, "slow/b": 60}  # type: ignore[union-attr]


def test_a_budget_is_named_with_what_it_has_left() -> None:
    held = replace(budget("gateway", 0, app="gateway"), desired=2, expected=3)
    by_day, _ = day_and_night(budgets=(held,))
    by_day = with_node(by_day, "worker-1", pods=(pod("gateway-1", labels={"app": "gateway"}),))
    assert sentence(Drain("worker-1").waits_for(by_day)) == "gateway-1 waits for budget gateway (0 of 1 left)"


def test_pods_that_are_not_ready_pay_no_budget_that_lets_them_go() -> None:
    """As the API server decides: under AlwaysAllow, or where all that must be healthy are."""
    strict = replace(budget("strict", 0, app="a"), desired=1, expected=1)
    some, _ = day_and_night(budgets=(strict,))
    unready, ready = (pod("p", labels={"app": "a"}, ready=is_ready) for is_ready in (False, True))
    assert budgets_to_pay(some, unready) == budgets_to_pay(some, ready) == (strict,)
    for kind in (replace(strict, always=True), replace(strict, healthy=1)):
        kinder = replace(some, budgets=(kind,))
        assert (budgets_to_pay(kinder, unready), budgets_to_pay(kinder, ready)) == ((), (kind,))
        going = with_node(kinder, "worker-1", pods=(unready, ready))
        assert sentence(Drain("worker-1").waits_for(going)) == "p waits for budget strict (0 of 0 left)"
        alone = with_node(going, "worker-1", pods=(unready,))
        assert sentence(Drain("worker-1").waits_for(alone)) == "1 pod to go"


def test_a_pod_under_two_budgets_is_refused_for_the_server_evicts_none_such() -> None:
    by_day, _ = day_and_night(budgets=(budget("one", 1, app="twice"), budget("two", 1)))
    twice = pod("twice", labels={"app": "twice"})
    (refusal,) = refusals(by_day := with_node(by_day, "worker-1", pods=(twice,)), night_wish(by_day))
    assert refusal.details == ("twice is under several budgets, one and two",)
    pending = with_node(by_day, "worker-1", pods=(replace(twice, phase="Pending"),))
    assert refusals(pending, night_wish(pending)) == ()

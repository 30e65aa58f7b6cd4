"""The clocks of guests after a resume: what sets them, and all that a kubelet writes by them meanwhile."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.day import at_work
from tests.support.kubernetes_cluster import BEGAN, DAY, PODS, Cluster, boot_the_day, the_condition
from tests.support.rehearsal import Rehearsal
from vgpuctl.sim.inventory import CHRONY, NEVER, TOOLS, Durations, default_inventory
from vgpuctl.sim.kube.objects import Object, from_timestamp, is_true, uid_of
from vgpuctl.sim.scenarios import EXAMPLES
from vgpuctl.sim.scenarios.scenario import read_scenario
from vgpuctl.sim.world import World

HOUR_S = 3600.0
ONE = "worker-1"


def day_with(clock: str, *, tools: bool = True) -> Cluster:
    """By day, with a guest on worker-1 whose clock is set so."""
    plain = default_inventory()
    vms = tuple(replace(vm, clock=clock, tools=tools) if vm.name == ONE else vm for vm in plain.vms)
    world = World(replace(plain, vms=vms), began=BEGAN)
    boot_the_day(world)
    return Cluster(world)


def sleep(day: Cluster, seconds: float = HOUR_S) -> None:
    day.kubernetes.freeze(ONE)
    day.wait(seconds)
    day.kubernetes.thaw(ONE)


def lease_lag_s(day: Cluster) -> float:
    """How old the Lease seems at this moment."""
    lease = day.stored("leases", "kube-node-lease", ONE)
    return (day.world.clock.utc() - from_timestamp(lease["spec"]["renewTime"])).total_seconds()


def heartbeat_lag_s(day: Cluster) -> float:
    heartbeat = the_condition(day.node(ONE), "Ready")["lastHeartbeatTime"]
    return (day.world.clock.utc() - from_timestamp(heartbeat)).total_seconds()


def test_tools_set_the_clock_soon_and_the_first_lease_comes_before() -> None:
    day = day_with(TOOLS)
    sleep(day)
    day.wait(1.1)
    assert lease_lag_s(day) == pytest.approx(HOUR_S, abs=1)
    day.wait(1.0)
    assert is_true(day.node(ONE), "Ready")
    assert heartbeat_lag_s(day) < 2
    day.wait(10)
    assert lease_lag_s(day) < 11


def test_chrony_sets_it_after_its_next_measurement() -> None:
    day = day_with(CHRONY)
    sleep(day)
    day.wait(60)
    assert is_true(day.node(ONE), "Ready")
    assert lease_lag_s(day) == pytest.approx(HOUR_S, abs=11)
    assert heartbeat_lag_s(day) == pytest.approx(HOUR_S, abs=70)
    day.wait(15)
    assert lease_lag_s(day) < 11


@pytest.mark.parametrize(("clock", "tools"), [(NEVER, True), (TOOLS, False)])
def test_a_clock_that_nothing_sets_lags_by_all_sleeps_until_a_boot(clock: str, tools: bool) -> None:
    day = day_with(clock, tools=tools)
    for nth in (1, 2):
        sleep(day)
        day.wait(HOUR_S)
        assert lease_lag_s(day) == pytest.approx(nth * HOUR_S, abs=11)
        assert is_true(day.node(ONE), "Ready"), "the node controller goes by its own clock"
    day.kubernetes.halt(ONE)
    day.kubernetes.boot(ONE, 1)
    day.wait(10)
    assert lease_lag_s(day) < 11


def test_a_second_sleep_before_chrony_has_measured_lasts_until_it_does() -> None:
    day = day_with(CHRONY)
    sleep(day)
    day.wait(30)
    sleep(day)
    day.wait(30)
    assert lease_lag_s(day) == pytest.approx(2 * HOUR_S, abs=11)
    day.wait(15)
    assert lease_lag_s(day) < 11


def test_a_lagging_kubelet_dates_its_pods_and_events_by_its_own_clock() -> None:
    day = day_with(NEVER)
    sleep(day)
    day.wait(20)
    pod = {"metadata": {"name": "late"}, "spec": {"nodeName": ONE, "containers": [{"name": "main"}]}}
    made = day.ask("POST", PODS, pod)
    day.wait(5)
    ran = day.stored("pods", "default", "late")
    lag = from_timestamp(made["metadata"]["creationTimestamp"]) - from_timestamp(ran["status"]["startTime"])
    assert lag == pytest.approx(timedelta(seconds=HOUR_S), abs=timedelta(seconds=2))
    day.ask("DELETE", f"{PODS}/late")
    day.wait(5)
    (killing,) = (event for event in events_of(day, ran) if event["reason"] == "Killing")
    age = day.world.clock.utc() - from_timestamp(killing["lastTimestamp"])
    assert age > timedelta(seconds=HOUR_S)


def test_a_deadline_that_passed_during_the_sleep_is_noticed_when_the_clock_is_set() -> None:
    day = day_with(CHRONY)
    spec = {"nodeName": ONE, "containers": [{"name": "main"}], "activeDeadlineSeconds": 600}
    tolerations = [{"operator": "Exists", "effect": "NoExecute"}]
    day.ask("POST", PODS, {"metadata": {"name": "brief"}, "spec": spec | {"tolerations": tolerations}})
    day.wait(10)
    sleep(day)
    day.wait(60)
    assert day.stored("pods", "default", "brief")["status"]["phase"] == "Running"
    day.wait(5)
    assert day.stored("pods", "default", "brief")["status"]["reason"] == "DeadlineExceeded"


def events_of(day: Cluster, item: Object) -> list[Object]:
    found = day.kubernetes.store.sorted("events", "default")
    return [event for event in found if event["involvedObject"]["uid"] == uid_of(item)]


def with_token(day: Cluster, life_s: int = 600) -> Object:
    """A pod that stays over the sleep, and whose readiness depends on a token of its own."""
    source = {"serviceAccountToken": {"audience": "vault", "expirationSeconds": life_s, "path": "token"}}
    probe = {"httpGet": {"path": "/ready", "port": 80}}
    spec = {
        "nodeName": ONE,
        "containers": [{"name": "main", "readinessProbe": probe}],
        "volumes": [{"name": "token", "projected": {"sources": [source]}}],
        "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
    }
    made = day.ask("POST", PODS, {"metadata": {"name": "caller"}, "spec": spec})
    day.wait(10)
    return made


def caller_is_ready(day: Cluster) -> bool:
    return is_true(day.stored("pods", "default", "caller"), "Ready")


def test_a_pod_with_an_expired_token_is_refused_until_the_clock_is_set() -> None:
    day = day_with(CHRONY)
    pod = with_token(day)
    day.wait(5 * HOUR_S)
    sleep(day)
    day.wait(10)
    assert is_true(day.node(ONE), "Ready")
    assert not caller_is_ready(day)
    (event,) = (found for found in events_of(day, pod) if found["reason"] == "Unhealthy")
    assert (event["type"], event["message"]) == (
        "Warning",
        "Readiness probe failed: HTTP probe failed with statuscode: 401",
    )
    day.wait(60)
    assert caller_is_ready(day)


def test_a_kubelet_whose_clock_lags_renews_tokens_too_late_again_and_again() -> None:
    day = day_with(NEVER)
    sleep(day)
    day.wait(10)
    with_token(day)
    # Issued now, good for 600 s; by the guest's clock 80 % of that have passed an hour later than in truth.
    day.wait(570)
    assert caller_is_ready(day)
    day.wait(60)
    assert not caller_is_ready(day)
    day.wait(HOUR_S + 480 - 600)
    assert caller_is_ready(day)
    day.wait(600)
    assert not caller_is_ready(day)


@pytest.mark.parametrize(("slept_s", "refused"), [(100.0, False), (130.0, True)])
def test_a_lag_within_a_fifth_of_the_tokens_life_refuses_no_request(slept_s: float, refused: bool) -> None:
    day = day_with(NEVER)
    with_token(day)
    day.wait(5 * HOUR_S)
    sleep(day, slept_s)
    met = False
    for _ in range(120):
        day.wait(10)
        met = met or not caller_is_ready(day)
    assert met is refused


def test_a_guest_whose_clock_is_right_needs_no_timer_for_tokens_and_clock() -> None:
    plain, with_one = day_with(TOOLS), day_with(TOOLS)
    with_token(with_one)
    plain.wait(10)
    assert live_timers(with_one) == live_timers(plain)


def test_many_sleeps_leave_no_more_timers_than_one() -> None:
    counts = []
    for sleeps in (1, 6):
        day = day_with(NEVER)
        with_token(day)
        for _ in range(sleeps):
            sleep(day)
            day.wait(60)
        day.wait(12 * HOUR_S)
        counts.append(len(day.kubernetes.kubelets[ONE]._time._running))
    assert counts[0] == counts[1]


def live_timers(day: Cluster) -> int:
    return sum(timer.action is not None for timer in day.world.clock._timers)


def test_the_scenarios_switches_end_in_the_day_whatever_the_clocks_say() -> None:
    """No clock holds a worker back. One of them is awake, uncordoned and hours behind."""
    rehearsal = Rehearsal.of(at_work(read_scenario(EXAMPLES["lagging-clocks"], Durations())), Durations())
    rehearsal.wait(60)
    for shift, awake in (("night", {"worker-5"}), ("day", set(DAY))):
        ended = rehearsal.switch(shift)
        assert (ended.finished, ended.state.gave_up, ended.state.going_back) == (True, {}, {})
        assert (rehearsal.awake(), rehearsal.broken, rehearsal.cordoned() & awake) == (awake, [], set())
        rehearsal.wait(8 * HOUR_S)
    now = rehearsal.world.clock.utc()
    leases = {name: rehearsal.world.kubernetes.store.get("leases", "kube-node-lease", name) for name in DAY}
    lags = {name: now - from_timestamp(lease["spec"]["renewTime"]) for name, lease in leases.items() if lease}
    assert [name for name, lag in lags.items() if lag > timedelta(hours=1)] == ["worker-4"]

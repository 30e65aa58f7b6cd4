"""HA admission control, foreseen: what is certainly too much is refused, what may be is remarked on, nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.fleets import CATALOGUE, WHOLE, fleet, timetable, with_worker, worker
from vgpuctl.model.admission import Admission, FailoverPolicy, ReservedShare, Slots
from vgpuctl.model.fleet import Fleet, Power, Stranger, Worker
from vgpuctl.model.wish import Wish
from vgpuctl.operations import look_ahead
from vgpuctl.planning.checks.admission import full_for_now
from vgpuctl.planning.wishes import switch_wish

GIB = 1024
THIRD = ReservedShare(34)


def by_day(name: str, host: str, gib: int) -> Worker:
    return worker(name, WHOLE, host=host, memory_mib=gib * GIB)


def by_night(name: str, host: str, gib: int) -> Worker:
    return worker(name, WHOLE, host=host, on=False, power=Power.SUSPENDED, memory_mib=gib * GIB)


def cluster(
    *workers: Worker, policy: ReservedShare | Slots | FailoverPolicy = THIRD, size_gib: int = 100, **more: object
) -> Fleet:
    """Hosts of one size, all under one admission control. With a third kept of 200 GB, 132 GB may be reserved."""
    some = fleet(*workers)
    kept = Admission(cluster="domain-c1", policy=policy, **more)  # type: ignore[arg-type]
    return on_each_host(some, admission=kept, cluster="gpu", memory_mib=size_gib * GIB)


def on_each_host(some: Fleet, **changes: object) -> Fleet:
    return replace(some, hosts={name: replace(host, **changes) for name, host in some.hosts.items()})  # type: ignore[arg-type]


def pair(day: int, night: int, number: int = 1) -> tuple[Worker, Worker]:
    return by_day(f"day-{number}", f"esx-{number}", day), by_night(f"night-{number}", f"esx-{number}", night)


def night(some: Fleet) -> Wish:
    names = list(some.workers)
    awake = {shift: tuple(name for name in names if name.startswith(shift)) for shift in ("day", "night")}
    return switch_wish(some, CATALOGUE, timetable(None, None, **awake), "night")


def told(some: Fleet) -> tuple[dict[str, str], list[str]]:
    """What is refused, by host; and what is remarked on."""
    ahead = look_ahead(some, night(some))
    assert {refusal.host for refusal in ahead.refusals}.isdisjoint(some.host_of(step.subject) for step in ahead.plan)
    return {refusal.host: refusal.message for refusal in ahead.refusals}, [r.message for r in ahead.remarks]


def test_what_fits_is_not_spoken_of() -> None:
    assert told(cluster(*pair(40, 60), *pair(40, 60, 2))) == ({}, [])


def test_what_would_be_taken_of_the_kept_share_is_refused_and_the_others_proceed() -> None:
    some = cluster(*pair(40, 60), *pair(40, 80, 2))
    refused, remarks = told(some)
    assert refused == {
        "esx-2": "night cannot begin on esx-2: HA admission control of gpu forbids to start night-2. It keeps 34 % of "
        "its memory free: of 200 GB, 132 GB may be reserved, and 140 GB would be."
    }
    assert remarks == []
    assert {step.subject for step in look_ahead(some, night(some)).plan} == {"day-1", "night-1"}


def test_what_a_refused_host_takes_is_there_for_the_next() -> None:
    """The second is refused; its day worker stays and keeps what it has."""
    refused, _ = told(cluster(*pair(10, 20), *pair(10, 100, 2), *pair(10, 90, 3), policy=ReservedShare(60)))
    assert set(refused) == {"esx-2"}


def test_who_gives_back_more_than_he_takes_helps_whoever_comes_before_him() -> None:
    assert told(cluster(*pair(20, 60), *pair(90, 50, 2)))[0] == {}


def test_where_too_much_is_reserved_even_then_nothing_starts_at_all() -> None:
    """A power-on is refused although its host gives back more than it takes."""
    refused, _ = told(cluster(*pair(90, 80), *pair(90, 80, 2)))
    assert set(refused) == {"esx-1", "esx-2"}


def test_strangers_count_wherever_in_the_cluster_they_run() -> None:
    stranger = Stranger(name="database", vm="vm-9", host="esx-2", reserved_mib=40 * GIB)
    some = cluster(*pair(40, 60), by_day("stays", "esx-2", 40))
    assert told(some)[0] == {}
    assert set(told(replace(some, strangers={"database": stranger}))[0]) == {"esx-1"}
    assert told(replace(some, strangers={"database": replace(stranger, on=False)}))[0] == {}


@pytest.mark.parametrize("why", ["maintenance", "connected"])
def test_hosts_that_could_not_help_do_not_count(why: str) -> None:
    some = cluster(*pair(40, 90), by_day("stays", "esx-2", 1))
    assert told(some)[0] == {}
    lost = replace(some.hosts["esx-2"], **{why: why == "maintenance"})  # type: ignore[arg-type]
    assert set(told(replace(some, hosts={**some.hosts, "esx-2": lost}))[0]) == {"esx-1"}


def test_a_host_of_unknown_memory_leaves_all_open() -> None:
    some = cluster(*pair(40, 99), *pair(40, 99, 2))
    assert set(told(some)[0]) == {"esx-1", "esx-2"}, "either would take more than is left"
    assert told(on_each_host(some, memory_mib=0)) == ({}, [])


def test_another_cluster_of_the_same_name_is_another() -> None:
    some = cluster(*pair(40, 60), *pair(40, 80, 2))
    other = Admission(cluster="domain-c2", policy=ReservedShare(10))
    elsewhere = {**some.hosts, "esx-2": replace(some.hosts["esx-2"], admission=other)}
    assert set(told(replace(some, hosts=elsewhere))[0]) == set()


def test_where_it_is_close_a_remark_tells_it() -> None:
    """Hosts keep something for themselves, and nobody tells how much."""
    refused, remarks = told(cluster(*pair(40, 60), *pair(40, 70, 2)))
    assert refused == {}
    assert remarks == [
        "HA admission control of gpu may forbid to start night-1 night-2: it keeps 34 % of its memory free; of 200 GB, "
        "at most 132 GB may be reserved, less what the hosts keep for themselves, and 130 GB would be"
    ]


def test_a_share_that_vcenter_reckons_itself_refuses_at_its_least_and_is_remarked_on_at_its_most() -> None:
    """For one of two hosts it is a half; what the settings say may be older."""
    two = (*pair(40, 50), *pair(40, 60, 2))
    assert set(told(cluster(*two, policy=ReservedShare(50, level=1)))[0]) == {"esx-2"}
    refused, remarks = told(cluster(*two, policy=ReservedShare(25, level=1)))
    assert (refused, "50 %" in remarks[0]) == ({}, True)
    assert told(cluster(*two, policy=ReservedShare(25)))[1] == []


def test_slots_must_leave_room_for_all_that_runs_when_the_largest_hosts_have_failed() -> None:
    three = (*pair(40, 60), *pair(40, 80, 2), *pair(40, 60, 3))
    assert told(cluster(*three[:4], by_day("stays", "esx-3", 1), policy=Slots(1)))[0] == {}
    assert set(told(cluster(*three, policy=Slots(2)))[0]) == {"esx-1", "esx-2", "esx-3"}
    assert told(cluster(*three, policy=Slots(0)))[0] == {}
    (message,) = told(cluster(*pair(10, 90), *pair(10, 90, 2), policy=Slots(1)))[0].values()
    assert "keeps room for the failure of 1 host free: of 200 GB, 100 GB may be reserved" in message


def test_how_many_slots_there_are_vcenter_decides_so_few_of_them_are_a_remark() -> None:
    """Three hosts have one slot of 60 GB each; one of them may fail, and three VMs would run."""
    some = cluster(*pair(20, 60), *pair(20, 20, 2), *pair(20, 20, 3), policy=Slots(1))
    refused, (remark,) = told(some)
    assert refused == {}
    assert "leaves about 2 slots of 60 GB; 3 would be used" in remark
    fixed = on_each_host(some, admission=Admission(cluster="domain-c1", policy=Slots(1, slot_mib=20 * GIB)))
    assert told(fixed) == ({}, [])


def test_nothing_starts_on_a_failover_host() -> None:
    some = cluster(*pair(40, 60), *pair(40, 60, 2), policy=FailoverPolicy(frozenset({"esx-2"})))
    refused, _ = told(some)
    assert "HA keeps esx-2 free as a failover host of gpu, and night-2 will not start there" in refused["esx-2"]
    assert set(refused) == {"esx-2"}


def test_where_drs_places_vms_a_failover_host_is_a_remark() -> None:
    some = cluster(*pair(40, 60), *pair(40, 60, 2), policy=FailoverPolicy(frozenset({"esx-2"})), drs_moves=True)
    refused, remarks = told(some)
    assert (refused, len(remarks), "where DRS places it" in remarks[0]) == ({}, 1, True)


def test_whom_ha_does_not_restart_refuses_nothing_but_is_remarked_on() -> None:
    """Nobody says whether room is kept for it."""
    two = (*pair(40, 60), *pair(40, 90, 2))
    assert set(told(cluster(*two))[0]) == {"esx-2"}
    for more in ({"exceptions": frozenset({"vm-night-2"})}, {"restarts": False}):
        refused, remarks = told(cluster(*two, **more))
        assert (refused, len(remarks)) == ({}, 1)
    assert set(told(cluster(*two, restarts=False, exceptions=frozenset({w.vm for w in two})))[0]) == {"esx-2"}


def test_a_start_waits_for_those_who_have_yet_to_leave_elsewhere_in_the_cluster() -> None:
    some = cluster(*pair(90, 20), *pair(40, 80, 2))
    wish = night(some)
    left = with_worker(some, "day-2", power=Power.SUSPENDED)
    assert full_for_now(left, wish, left.worker("night-2"))
    assert not full_for_now(left, wish, left.worker("night-1")), "110 GB is not too much"
    gone = with_worker(left, "day-1", power=Power.SUSPENDED)
    assert not full_for_now(gone, wish, gone.worker("night-2"))


def test_where_nobody_will_leave_any_more_vcenter_is_asked() -> None:
    some = cluster(*pair(40, 99), by_day("stays", "esx-2", 90))
    left = with_worker(some, "day-1", power=Power.SUSPENDED)
    assert not full_for_now(left, night(some), left.worker("night-1"))

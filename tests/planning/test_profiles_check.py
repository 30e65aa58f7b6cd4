"""Everything that does not fit between the files and vCenter is told, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.fleets import HALF, PROFILES, QUARTER, WHOLE, card, fleet, timetable, with_worker, worker
from vgpuctl.basics.names import Names
from vgpuctl.model.drs import Drs
from vgpuctl.model.fleet import Fleet, Mmio, Stranger
from vgpuctl.model.hosts import CardMode
from vgpuctl.model.profiles import Catalogue, Profile, WorkerRule
from vgpuctl.reporting.profiles_check import Compared, Finding, Severity, check

DAY = ("worker-1", "worker-2")
SHIFTS = timetable(day=DAY, night=("worker-5",))
CHOICES = (
    WorkerRule(profile="v100-4q-4GB", names=Names(DAY), where="p.yaml:7"),
    WorkerRule(profile="v100-16q-16GB", names=Names(("worker-5",)), where="p.yaml:8"),
)
CATALOGUE = Catalogue({name: PROFILES[name] for name in ("v100-4q-4GB", "v100-16q-16GB")}, CHOICES)


def good() -> Fleet:
    days = [worker(name, chosen_at=("p.yaml:7",)) for name in DAY]
    return fleet(*days, worker("worker-5", WHOLE, on=False, chosen_at=("p.yaml:8",)))


def found(some: Fleet, **more: Any) -> list[Finding]:
    return list(check(Compared(**{"fleet": some, "catalogue": CATALOGUE, "timetables": (SHIFTS,), **more})))


def host(some: Fleet, **changes: Any) -> Fleet:
    return replace(some, hosts={name: replace(each, **changes) for name, each in some.hosts.items()})


def test_nothing_is_said_of_what_fits() -> None:
    assert found(good()) == []


WIDE = Mmio(efi=True, use_64bit=True, size_gib=64)


@pytest.mark.parametrize(
    ("changes", "kind", "severity"),
    [
        ({"fixed_devices": ("an SR-IOV network card",)}, "not-suspendable", "error"),
        ({"tracing": ("pciPassthru0.cfg.enable_uvm",)}, "not-suspendable", "error"),
        ({"managed_by": "somebody"}, "managed", "error"),
        ({"question": "moved or copied?"}, "question", "error"),
        ({"doubts": ("two nodes",)}, "in-doubt", "error"),
        ({"memory_locked": False}, "memory-not-reserved", "error"),
        ({"mmio": replace(WIDE, efi=False)}, "no-efi", "warning"),
        ({"mmio": replace(WIDE, efi=False), "vgpus": ()}, "no-efi", "error"),
        ({"mmio": replace(WIDE, size_gib=32)}, "address-space", "warning"),
        ({"mmio": replace(WIDE, use_64bit=False)}, "address-space", "warning"),
        ({"mmio": replace(WIDE, size_gib=32), "memory_mib": 32 * 1024}, "address-space", "warning"),
    ],
)
def test_what_stands_in_the_way_of_one_worker(changes: dict[str, Any], kind: str, severity: str) -> None:
    (one,) = found(with_worker(good(), "worker-1", **changes))
    assert (one.kind, one.severity, one.where, one.workers) == (kind, severity, "p.yaml:7", ("worker-1",))
    assert one.hint


def test_what_provision_sets_anyway_is_no_finding_before() -> None:
    bare = Mmio(efi=True)
    assert found(with_worker(good(), "worker-1", vgpus=(), memory_locked=False, mmio=bare)) == []


def test_nothing_is_said_of_the_address_space_of_a_small_vm() -> None:
    assert found(with_worker(good(), "worker-1", mmio=Mmio(efi=True), memory_mib=32 * 1024 - 1)) == []


def test_who_never_sleeps_need_not_be_suspendable() -> None:
    some = with_worker(good(), "worker-1", fixed_devices=("an SR-IOV network card",))
    always = timetable(day=DAY, night=(*DAY, "worker-5"))
    told = [each for each in found(some, timetables=(always,)) if each.kind == "not-suspendable"]
    assert [each.severity for each in told] == [Severity.WARNING]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"maintenance": True}, "host-away"),
        ({"connected": False}, "host-away"),
        ({"not_suspendable": frozenset((QUARTER,))}, "not-suspendable"),
        ({"unshared": (replace(card(1), shared=False),)}, "unshared-card"),
    ],
)
def test_what_a_host_lacks(changes: dict[str, Any], kind: str) -> None:
    assert [each.kind for each in found(host(good(), **changes))] == [kind]


def test_a_card_that_is_not_shared_is_no_card() -> None:
    some = host(good(), cards=(), unshared=(replace(card(0), shared=False),))
    assert {each.kind for each in found(some) if each.severity is Severity.ERROR} == {"not-shared"}


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("grid_v100-16qq", "grid_v100-16q"), ("grid_a100-10c", "nvidia_a100-10c"), ("v100-8q", "grid_v100-8q")],
)
def test_an_unknown_type_is_told_with_the_nearest_of_its_card(asked: str, meant: str) -> None:
    """Whose types begin with `grid_` on some hosts and with `nvidia_` on others."""
    odd = Profile("odd", (asked,), "p.yaml:4")
    some = good()
    offers = (*some.hosts["esx-1"].offers, "nvidia_a100-10c", "nvidia_a100-20c", "grid_v100-10c")
    (one,) = [
        each
        for each in found(host(some, offers=offers), catalogue=Catalogue({**CATALOGUE.profiles, "odd": odd}, CHOICES))
        if each.kind == "unknown-type"
    ]
    assert (one.where, one.about) == ("p.yaml:4", "profile odd")
    assert f"did you mean {meant}?" in one.what


def test_a_card_of_another_board_is_told_with_hosts_that_have_one() -> None:
    some = host(good(), offers=())
    a100 = replace(card(0), model="A100-40", frame_mib=40960)
    hosts = {"esx-1": replace(some.hosts["esx-1"], cards=(a100,)), "esx-2": replace(some.hosts["esx-1"], name="esx-2")}
    told = [each for each in found(replace(some, hosts=hosts)) if each.kind == "wrong-card"]
    assert {name for each in told for name in each.workers} == {*DAY, "worker-5"}
    assert all("Move the VM to esx-2" in each.hint for each in told)


def test_different_sizes_on_one_card_need_mixed_size() -> None:
    big, small = "nvidia_a100-20c", "nvidia_a100-10c"
    profiles = {"big": Profile("big", (big,)), "small": Profile("small", (small,))}
    a100 = replace(card(0), model="A100-40", frame_mib=40960)
    some = fleet(
        worker("worker-1", big, on=False, profile="big"),
        worker("worker-2", small, on=False, profile="small"),
        cards={"esx-1": [a100]},
    )
    some, choices = (
        host(some, offers=()),
        tuple(WorkerRule(profile=name, names=Names(("worker-*",))) for name in profiles),
    )
    more: dict[str, Any] = {"catalogue": Catalogue(profiles, choices), "timetables": (timetable(all=DAY),)}
    assert "mixed-size-needed" in {each.kind for each in found(some, **more)}
    mixed = host(some, cards=(replace(a100, mode=CardMode.MIXED_SIZE),))
    assert {each.kind for each in found(mixed, **more)} & {"mixed-size-needed", "no-room"} == set()


def test_a_shift_that_can_never_begin_is_told() -> None:
    held = host(good(), cards=(card(0, "other"),))
    some = replace(held, strangers={"other": Stranger(name="other", host="esx-1", vgpus=(HALF,))})
    assert {each.kind for each in found(some)} == {"no-room"}


def test_memory_that_no_shift_frees_is_told() -> None:
    some = with_worker(host(good(), memory_mib=65536), "worker-5", memory_mib=131072)
    assert {each.kind for each in found(some)} == {"no-memory"}


def test_sizes_that_only_other_cards_could_mix_are_told_so() -> None:
    (one,) = found(good(), timetables=(timetable(all=(*DAY, "worker-5")),))
    assert one.kind == "no-room"
    assert "sizes share a card only in mixed-size mode, which V100-16 does not know" in one.details


def test_the_policy_trap_is_told_where_both_sizes_are_awake() -> None:
    some = host(good(), cards=(card(0), card(1)))
    assert found(some) == []
    (one,) = found(some, timetables=(timetable(all=(*DAY, "worker-5")),))
    assert (one.kind, one.severity) == ("policy-trap", Severity.WARNING)


def test_drs_is_told_unless_it_is_overridden_or_has_no_choice() -> None:
    some = host(good(), cluster="gpu")
    drs = Drs(clusters=frozenset({"gpu"}))
    assert found(some, drs=drs) == []
    two = replace(some, hosts={**some.hosts, "esx-2": replace(some.hosts["esx-1"], name="esx-2", cards=(card(0),))})
    told = found(two, drs=replace(drs, held=frozenset({"vm-worker-1"})))
    assert {(each.kind, each.workers) for each in told} == {("drs", ("worker-2",)), ("drs", ("worker-5",))}


def test_entries_that_mean_nobody_or_somebody_twice_are_told() -> None:
    nobody = WorkerRule(profile="v100-4q-4GB", folder="/dc-1/vm/none", where="p.yaml:9")
    unused = Profile("v100-8q-8GB", (HALF,), "p.yaml:5")
    catalogue = Catalogue({**CATALOGUE.profiles, unused.name: unused}, (*CHOICES, nobody))
    there = [each for each in good().workers.values() if each.name != "worker-2"]
    some = fleet(*there, missing=("worker-2",))
    kinds = [(each.kind, each.where) for each in found(some, catalogue=catalogue)]
    assert kinds == [("unused-profile", "p.yaml:5"), ("no-such-vm", "p.yaml:7"), ("chooses-nobody", "p.yaml:9")]
    other = replace(timetable(day=("worker-1",)), name="other")
    assert {(each.kind, each.workers) for each in found(good(), timetables=(timetable(day=DAY), other))} == {
        ("in-two-timetables", ("worker-1",)),
        ("in-no-timetable", ("worker-5",)),
    }


def test_errors_come_first_and_the_same_of_several_is_said_once() -> None:
    some = with_worker(with_worker(good(), "worker-5", managed_by="x"), "worker-1", mmio=Mmio(efi=True))
    some = with_worker(some, "worker-2", mmio=Mmio(efi=True))
    told = [(each.kind, each.workers) for each in found(some)]
    assert told == [("managed", ("worker-5",)), ("address-space", DAY)]

"""Every kind of object that we read, with each field in turn replaced by nonsense: nothing ends, and it is named."""

from __future__ import annotations

from functools import cache

import pytest

from tests.support.fields import MISSING, NONSENSE, Estate, Field, paths_in, with_nonsense
from tests.support.vcenter_fields import VcenterEstate
from vgpuctl.kube import leases
from vgpuctl.model.errors import PassingError

#: Of each field so much nonsense is tried at once; together the turns try all of it.
TURNS = [0, 1, *(pytest.param(turn, marks=pytest.mark.long) for turn in range(2, len(NONSENSE)))]
KINDS = (
    *("nodes", "pods", "leases", "budgets", "daemonsets", "jobs", "persistentvolumeclaims", "volumeattachments"),
    *(
        "deployments",
        "statefulsets",
        "horizontalpodautoscalers",
        "machines",
        "resourcequotas",
        "rollouts",
        "departures",
    ),
)
VCENTERS_KINDS = ("VirtualMachine", "HostSystem", "ClusterComputeResource", "Datastore", "Task")


@cache
def estate() -> Estate:
    return Estate()


@cache
def vcenter() -> VcenterEstate:
    return VcenterEstate()


def test_each_kind_that_is_read_is_among_them() -> None:
    assert set(KINDS) == set(estate().raw)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("kind", KINDS)
def test_nonsense_in_any_field_ends_nothing_and_is_named(kind: str, turn: int) -> None:
    tried, read = 0, 0
    for number, field in enumerate(each for each in estate().fields() if each.kind == kind):
        tried += 1
        read += _try(estate(), field, NONSENSE[(number + turn) % len(NONSENSE)])
    assert tried > 5
    assert read > 0


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("kind", VCENTERS_KINDS)
def test_nonsense_in_any_property_ends_nothing_and_is_named(kind: str, turn: int) -> None:
    fields = [each for each in vcenter().fields() if each.kind == kind]
    assert len(fields) > 1
    for number, field in enumerate(fields):
        _try(vcenter(), field, NONSENSE[(number + turn) % len(NONSENSE)])


@pytest.mark.parametrize("nonsense", NONSENSE, ids=lambda each: "missing" if each is MISSING else repr(each)[:20])
def test_nonsense_in_the_acting_lease_is_refused_or_written_over(nonsense: object) -> None:
    marks = {leases.GIVES_WAY: "true", leases.ASKED_BY: "ann"}
    sound = leases.lease_body(leases.new_lease(leases.ACTING), "another", 15, marks)
    sound["metadata"]["resourceVersion"] = "7"
    for path in paths_in(sound):
        try:
            found = leases.lease_in(with_nonsense(sound, path, nonsense), leases.ACTING)
        except PassingError:
            continue
        assert isinstance(leases.holder_of(found), str), path
        assert 0 <= leases.claimed_s(found) <= leases.LONGEST_S, path
        assert isinstance(leases.asked_by(found), str), path
        assert isinstance(leases.gives_way(found), bool), path
        assert leases.lease_body(found, "me", 15, marks)["spec"]["leaseTransitions"] >= 1, path


def _try(some: Estate, field: Field, nonsense: object) -> bool:
    what = f"{field} is {'missing' if nonsense is MISSING else repr(nonsense)[:40]}"
    try:
        shown = some.replaced(field, nonsense)
    except Exception as error:
        error.add_note(what)
        raise
    assert not shown or all(name in shown for name in some.unread), what
    return bool(shown)

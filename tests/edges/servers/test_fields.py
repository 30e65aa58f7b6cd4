"""Every kind of object that we read, with each field in turn replaced by nonsense: nothing ends, and it is named."""

from __future__ import annotations

from functools import cache

import pytest

from tests.support.fields import MISSING, NONSENSE, Estate, Field
from tests.support.vcenter_fields import VcenterEstate

#: Of each field so much nonsense is tried at once; together the turns try all of it.
TURNS = [0, 1, 2, *(pytest.param(turn, marks=pytest.mark.long) for turn in range(3, len(NONSENSE)))]
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


def _try(some: Estate, field: Field, nonsense: object) -> bool:
    what = f"{field} is {'missing' if nonsense is MISSING else repr(nonsense)[:40]}"
    try:
        shown = some.replaced(field, nonsense)
    except Exception as error:
        error.add_note(what)
        raise
    assert not shown or all(name in shown for name in some.unread), what
    return bool(shown)

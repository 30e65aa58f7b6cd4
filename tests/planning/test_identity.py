"""Which node is inside which VM: told by ids in either byte order, else by name, and never guessed."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.kube import views
from vgpuctl.model.identity import Inside, NodeIdentity, NodeIndex, VmIdentity, match, swapped

ONE = "4210f2a6-53c1-8d0e-1b2c-0a0b0c0d0e0f"
OTHER = "42109c3e-0f0e-1c1d-2b2a-3a3b3c3d3e3f"


def inside(vms: list[VmIdentity], *nodes: NodeIdentity) -> dict[str, Inside]:
    return match(vms, NodeIndex(nodes))


def vm(name: str = "worker-1", bios: str = ONE, moid: str = "vm-1") -> VmIdentity:
    return VmIdentity(moid, name, bios)


def test_the_providers_id_tells_it_whatever_the_names_are() -> None:
    assert inside([vm()], NodeIdentity("capv-x7f9", ONE, "")) == {"vm-1": Inside("capv-x7f9")}
    assert inside([vm(bios=ONE.upper())], NodeIdentity("capv-x7f9", ONE, "")) == {"vm-1": Inside("capv-x7f9")}


@given(st.uuids().map(str))
def test_the_systems_uuid_tells_it_in_both_byte_orders(bios: str) -> None:
    for said in (bios, swapped(bios), swapped(bios).upper()):
        assert inside([vm(bios=bios)], NodeIdentity("n", "", said)) == {"vm-1": Inside("n")}


@given(st.uuids().map(str))
def test_the_other_byte_order_is_that_of_the_first_three_fields(text: str) -> None:
    assert swapped(text) == str(uuid.UUID(bytes_le=uuid.UUID(text).bytes))
    assert swapped(swapped(text)) == text


def test_a_name_tells_it_only_where_no_id_does() -> None:
    assert inside([vm()], NodeIdentity("worker-1", "", "")) == {"vm-1": Inside("worker-1")}
    mine, others = NodeIdentity("any", ONE, ""), NodeIdentity("worker-1", OTHER, "")
    assert inside([vm()], mine, others) == {"vm-1": Inside("any")}
    second = vm("second", OTHER, "vm-2")
    assert inside([vm(bios=""), second], others) == {"vm-1": Inside(), "vm-2": Inside("worker-1")}


def test_two_nodes_that_claim_one_vm_are_a_doubt() -> None:
    found = inside([vm()], NodeIdentity("a", ONE, ""), NodeIdentity("b", "", swapped(ONE)))
    both = ("a", "b")
    assert found == {"vm-1": Inside(doubt="the nodes a and b both claim to be VM worker-1", claimants=both)}


def test_one_node_that_may_be_in_two_vms_is_a_doubt_for_both() -> None:
    """As after a clone that kept its BIOS uuid."""
    found = inside([vm(), vm("copy", ONE, "vm-2")], NodeIdentity("a", ONE, ""))
    assert {each.node for each in found.values()} == {None}
    assert {each.doubt for each in found.values()} == {"node a may be in any of the VMs copy and worker-1"}


@pytest.mark.parametrize("said", [ONE, swapped(ONE), ONE.upper()])
@pytest.mark.parametrize("true", [("", ""), (ONE, ""), ("", ONE), ("", swapped(ONE))])
def test_a_foreign_node_that_claims_a_vm_beside_its_own_is_a_doubt(said: str, true: tuple[str, str]) -> None:
    """Whatever the true node says, even if nothing but its name; and whichever id the foreign one forges."""
    forged = [("", said)] if said == swapped(ONE) else [("", said), (said, "")]
    for rogue in (NodeIdentity("rogue", *ids) for ids in forged):
        found = inside([vm()], NodeIdentity("worker-1", *true), rogue)["vm-1"]
        assert (found.node, found.claimants) == (None, ("rogue", "worker-1"))
        assert found.doubt == "the nodes rogue and worker-1 both claim to be VM worker-1"


def test_a_node_that_names_two_machines_is_a_doubt_whichever_of_them_are_seen() -> None:
    """Its provider's id was written for it; its kubelet forged the uuid of another VM."""
    torn = NodeIdentity("rogue", OTHER, ONE)
    told = "spec.providerID and systemUUID of node rogue name two different machines"
    assert inside([vm()], torn) == {"vm-1": Inside(doubt=told, claimants=("rogue",))}
    both = inside([vm(), vm("own", OTHER, "vm-2")], torn)
    assert {each.doubt for each in both.values()} == {"node rogue may be in any of the VMs own and worker-1"}
    assert inside([vm()], NodeIdentity("n", ONE, swapped(ONE))) == {"vm-1": Inside("n")}


def test_a_node_of_the_vms_name_with_anothers_uuid_is_a_doubt() -> None:
    found = inside([vm()], NodeIdentity("worker-1", OTHER, ""))["vm-1"]
    assert (found.node, found.doubt) == (
        None,
        "node worker-1 has the name of VM worker-1, but the uuid of another machine",
    )


def test_only_vspheres_provider_tells_which_vm_a_node_is() -> None:
    """Other distributions write ids of their own, by which the node would seem to be another machine."""
    for provider, known in ((f"vsphere://{ONE.upper()}", ONE), ("k3s://worker-1", ""), ("", "")):
        raw = {"metadata": {"name": "worker-1", "resourceVersion": "1"}, "spec": {"providerID": provider}}
        assert views.node(raw).identity == NodeIdentity("worker-1", known, "")


def test_no_match_is_no_node() -> None:
    assert inside([vm()], NodeIdentity("else", OTHER, OTHER)) == {"vm-1": Inside()}

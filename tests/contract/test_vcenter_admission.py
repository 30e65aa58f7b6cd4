"""What HA keeps free, read through the stream as a switch does, from ours and, as far as it knows it, from vcsim."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from tests.support.peers.vcenters import Client, Vcenter, session_at, vcsim
from tests.support.peers.vcenters import ours as our_vcenter
from vgpuctl.model.admission import Admission, FailoverPolicy, ReservedShare, Slots
from vgpuctl.sim.inventory import Ha, default_inventory
from vgpuctl.vsphere.admission import admission
from vgpuctl.vsphere.property_filters import ObservationScope
from vgpuctl.vsphere.stream import VcenterStream

POLICIES: dict[str, tuple[Ha | None, Any]] = {
    "share": (Ha(memory_percent=25), ReservedShare(25)),
    "slots": (Ha(level=1, slot_mib=4096), Slots(1, 4096)),
    "spares": (Ha(hosts=("esx-1",)), FailoverPolicy(frozenset({"esx-1"}))),
    "none": (None, None),
}


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ours(policy: str, tmp_path: Path) -> Iterator[Vcenter]:
    """Two hosts, the second with none of our workers."""
    inventory = dataclasses.replace(default_inventory(hosts=2), workloads=(), ha=POLICIES[policy][0])
    with our_vcenter(tmp_path, inventory) as vcenter:
        yield vcenter


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Vcenter]:
    """HA is on, with admission control, and does not restart one worker."""
    with vcsim(tmp_path, "open-sesame") as vcenter:
        client, kinds = Client(vcenter), vim.cluster
        cluster, worker = client.view(vim.ClusterComputeResource).view[0], client.vm("worker-1")
        never = kinds.DasVmConfigInfo(key=worker, dasSettings=kinds.DasVmSettings(restartPriority="disabled"))
        spec = kinds.ConfigSpecEx(
            dasConfig=kinds.DasConfigInfo(enabled=True, admissionControlEnabled=True, admissionControlPolicy=share()),
            dasVmConfigSpec=[kinds.DasVmConfigSpec(operation="add", info=never)],
        )
        client.ok(cluster.ReconfigureComputeResource_Task(spec, True))
        yield vcenter
        client.close()


def share() -> Any:
    return vim.cluster.FailoverResourcesAdmissionControlPolicy(
        cpuFailoverResourcesPercent=25, memoryFailoverResourcesPercent=25
    )


def looked_at(vcenter: Vcenter) -> tuple[set[str], Admission | None]:
    """The hosts of all VMs that a switch of one worker looks at; and what its host's cluster keeps free."""
    with session_at(vcenter) as session:
        stream = VcenterStream(
            session,
            lambda vms: [vm for vm in vms if vm.name == "worker-1"],
            ObservationScope(neighbours=True),
            lambda: None,
        )
        stream.fill()
        vms, hosts = stream.vms().values(), stream.hosts()
    (mine,) = (hosts[vm.outline.host] for vm in vms if vm.outline.name == "worker-1")
    assert mine.memory_mib > 0
    return {hosts[vm.outline.host].name for vm in vms}, mine.admission


def test_the_stream_tells_what_a_cluster_keeps_free_and_who_shares_it(ours: Vcenter, policy: str) -> None:
    names, told = looked_at(ours)
    assert (told and told.policy) == POLICIES[policy][1]
    assert names == ({"esx-1", "esx-2"} if told else {"esx-1"}), "where nothing is kept, other hosts do not matter"


def test_vcsim_knows_switches_and_overrides_but_keeps_no_policy(theirs: Vcenter) -> None:
    """So nothing is told of it, and nothing breaks; with a policy, its other words are understood."""
    assert looked_at(theirs)[1] is None
    client = Client(theirs)
    config = client.read(client.view(vim.ClusterComputeResource).view[0], "configurationEx")
    assert config.dasConfig.admissionControlPolicy is None, "it has learned it: compare the policies too"
    config.dasConfig.admissionControlPolicy = share()
    told = admission("domain-c1", config, {})
    assert told is not None
    assert (told.policy, told.counts(client.vm("worker-1")._moId)) == (ReservedShare(25), False)
    assert told.counts(client.vm("worker-2")._moId)
    client.close()

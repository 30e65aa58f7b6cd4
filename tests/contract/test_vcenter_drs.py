"""Whom DRS may place on another host: overrides and must-rules, read from ours and from vcsim."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from tests.support.peers.vcenters import Client, Vcenter, ours, session_at, vcsim
from vgpuctl.sim.inventory import Inventory, default_inventory
from vgpuctl.vsphere import clusters

TOLD: dict[str, dict[str, Any]] = {
    "worker-1": {"drs": "disabled"},
    "worker-2": {"drs": "manual"},
    "worker-3": {"must_run_on": "esx-1"},
    "worker-4": {"drs": "fullyAutomated"},
}
HELD = {"worker-1", "worker-2", "worker-3"}


@pytest.fixture(params=["ours", "vcsim"])
def told(request: pytest.FixtureRequest, logs: Path) -> Iterator[Vcenter]:
    """A vCenter of its own, in which DRS is on, with a word of its own for four of five workers."""
    folder = logs / f"drs-{request.param}"
    folder.mkdir()
    if request.param == "ours":
        with ours(folder, _inventory()) as vcenter:
            yield vcenter
        return
    with vcsim(folder, "open-sesame") as vcenter:
        client = Client(vcenter)
        cluster = client.view(vim.ClusterComputeResource).view[0]
        client.ok(cluster.ReconfigureComputeResource_Task(_everything(client), True))
        yield vcenter
        client.close()


def _inventory() -> Inventory:
    plain = default_inventory()
    vms = tuple(dataclasses.replace(vm, **TOLD.get(vm.name, {})) for vm in plain.vms)
    return dataclasses.replace(plain, vms=vms, workloads=(), drs=True)


def _everything(client: Client) -> Any:
    kinds, bound = vim.cluster, client.vm("worker-3")
    return kinds.ConfigSpecEx(
        drsConfig=kinds.DrsConfigInfo(enabled=True, enableVmBehaviorOverrides=True, defaultVmBehavior="fullyAutomated"),
        drsVmConfigSpec=[
            kinds.DrsVmConfigSpec(operation="add", info=info)
            for info in (
                kinds.DrsVmConfigInfo(key=client.vm("worker-1"), enabled=False),
                kinds.DrsVmConfigInfo(key=client.vm("worker-2"), enabled=True, behavior="manual"),
                kinds.DrsVmConfigInfo(key=client.vm("worker-4"), enabled=True, behavior="fullyAutomated"),
            )
        ],
        groupSpec=[
            kinds.GroupSpec(operation="add", info=kinds.VmGroup(name="vms", vm=[bound])),
            kinds.GroupSpec(
                operation="add", info=kinds.HostGroup(name="one", host=[client.read(bound, "runtime.host")])
            ),
        ],
        rulesSpec=[
            kinds.RuleSpec(
                operation="add",
                info=kinds.VmHostRuleInfo(
                    name="must", enabled=True, mandatory=True, vmGroupName="vms", affineHostGroupName="one"
                ),
            )
        ],
    )


def test_overrides_and_must_rules_hold_vms_where_they_are(told: Vcenter) -> None:
    client = Client(told)
    ids = {name: client.vm(name)._moId for name in (*TOLD, "worker-5")}
    cluster = client.read(client.view(vim.ClusterComputeResource).view[0], "name")
    with session_at(told) as session:
        drs = clusters.drs(session)
    assert drs.clusters == {cluster}
    assert {name for name, moid in ids.items() if not drs.may_place(moid, cluster)} == HELD
    client.close()

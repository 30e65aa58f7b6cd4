"""A cluster's configuration: HA, DRS, overrides for single VMs, and rules that bind VMs to hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgpuctl.sim.inventory import DRS_DISABLED
from vgpuctl.sim.vcenter.inventory import ha_properties, refs
from vgpuctl.sim.vcenter.physics.estate import Estate
from vgpuctl.sim.vcenter.physics.places import Cluster
from vgpuctl.sim.vcenter.physics.records import Host, Vm
from vgpuctl.sim.vcenter.wire.vmomi import vim


def configuration(estate: Estate, cluster: Cluster) -> Any:
    bound = {host: vms for host in cluster.hosts if (vms := _bound_to(cluster, host))}
    return vim.cluster.ConfigInfoEx(
        dasConfig=ha_properties.settings(estate.inventory.ha, cluster),
        drsConfig=vim.cluster.DrsConfigInfo(
            enabled=estate.inventory.drs,
            enableVmBehaviorOverrides=True,
            defaultVmBehavior=estate.inventory.drs_behaviour,
        ),
        drsVmConfig=[_override(vm) for vm in cluster.vms if vm.spec.drs],
        group=[group for host, vms in bound.items() for group in _groups(host, vms)],
        rule=[_rule(number, host) for number, host in enumerate(bound, start=1)],
    )


def _bound_to(cluster: Cluster, host: Host) -> list[Vm]:
    return [vm for vm in cluster.vms if vm.spec.must_run_on == host.name]


def _override(vm: Vm) -> Any:
    # vSphere API: DRS that is off for one VM is an override with `enabled` false.
    if vm.spec.drs == DRS_DISABLED:
        return vim.cluster.DrsVmConfigInfo(key=refs.of(vm), enabled=False)
    return vim.cluster.DrsVmConfigInfo(key=refs.of(vm), enabled=True, behavior=vm.spec.drs)


def _groups(host: Host, vms: list[Vm]) -> Iterator[Any]:
    yield vim.cluster.VmGroup(name=f"vms-of-{host.name}", vm=refs.of_all(vms))
    yield vim.cluster.HostGroup(name=f"only-{host.name}", host=[refs.of(host)])


def _rule(number: int, host: Host) -> Any:
    return vim.cluster.VmHostRuleInfo(
        key=number,
        name=f"must-run-on-{host.name}",
        enabled=True,
        # vSphere API: a must-rule. It names its groups, so their names join the three.
        mandatory=True,
        vmGroupName=f"vms-of-{host.name}",
        affineHostGroupName=f"only-{host.name}",
    )

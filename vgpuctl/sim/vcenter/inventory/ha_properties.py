"""A cluster's HA properties: its settings, and the resources that are free for failover now."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.inventory import Ha
from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.physics import failover
from vgpuctl.sim.vcenter.physics.places import Cluster
from vgpuctl.sim.vcenter.wire.vmomi import vim


def settings(ha: Ha | None, cluster: Cluster) -> Any:
    if ha is None:
        return vim.cluster.DasConfigInfo(enabled=False)
    return vim.cluster.DasConfigInfo(
        enabled=True,
        vmMonitoring="vmMonitoringDisabled",
        hostMonitoring="enabled",
        failoverLevel=ha.level or 1,
        admissionControlPolicy=_policy(ha, cluster),
        admissionControlEnabled=True,
        defaultVmSettings=vim.cluster.DasVmSettings(restartPriority="medium", isolationResponse="none"),
    )


def _policy(ha: Ha, cluster: Cluster) -> Any:
    kinds = vim.cluster
    if ha.memory_percent:
        return kinds.FailoverResourcesAdmissionControlPolicy(
            cpuFailoverResourcesPercent=ha.memory_percent,
            memoryFailoverResourcesPercent=ha.memory_percent,
            failoverLevel=1,
            # vSphere API: otherwise vCenter computes the shares from `failoverLevel` and ignores those above.
            autoComputePercentages=False,
        )
    if ha.level:
        # vSphere API: without a slot policy the largest reservation of a powered-on VM is the slot.
        fixed = kinds.FixedSizeSlotPolicy(cpu=32, memory=ha.slot_mib) if ha.slot_mib else None
        return kinds.FailoverLevelAdmissionControlPolicy(failoverLevel=ha.level, slotPolicy=fixed)
    spares = [refs.of(host) for host in cluster.hosts if host.name in ha.hosts]
    return kinds.FailoverHostAdmissionControlPolicy(failoverHosts=spares, failoverLevel=len(spares))


def state(ha: Ha | None, cluster: Cluster) -> Any:
    """Return what is free for failover now; None unless the policy is a percentage."""
    if ha is None or not ha.memory_percent:
        return None
    return vim.cluster.FailoverResourcesAdmissionControlInfo(
        currentCpuFailoverResourcesPercent=100,
        currentMemoryFailoverResourcesPercent=max(0, int(failover.free_percent(cluster, 0))),
    )

"""What a cluster tells of HA: its settings, and what is kept free at this moment."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.physics import failover
from vgpuctl.sim.vcenter.physics.estate import Estate
from vgpuctl.sim.vcenter.wire.vmomi import vim


def settings(estate: Estate) -> Any:
    if estate.inventory.ha is None:
        return vim.cluster.DasConfigInfo(enabled=False)
    return vim.cluster.DasConfigInfo(
        enabled=True,
        vmMonitoring="vmMonitoringDisabled",
        hostMonitoring="enabled",
        failoverLevel=estate.inventory.ha.level or 1,
        admissionControlPolicy=_policy(estate),
        admissionControlEnabled=True,
        defaultVmSettings=vim.cluster.DasVmSettings(restartPriority="medium", isolationResponse="none"),
    )


def _policy(estate: Estate) -> Any:
    kept, kinds = estate.inventory.ha, vim.cluster
    assert kept is not None
    if kept.memory_percent:
        return kinds.FailoverResourcesAdmissionControlPolicy(
            cpuFailoverResourcesPercent=kept.memory_percent,
            memoryFailoverResourcesPercent=kept.memory_percent,
            failoverLevel=1,
            autoComputePercentages=False,
        )
    if kept.level:
        fixed = kinds.FixedSizeSlotPolicy(cpu=32, memory=kept.slot_mib) if kept.slot_mib else None
        return kinds.FailoverLevelAdmissionControlPolicy(failoverLevel=kept.level, slotPolicy=fixed)
    spares = [refs.of(host) for host in estate.hosts.values() if host.name in kept.hosts]
    return kinds.FailoverHostAdmissionControlPolicy(failoverHosts=spares, failoverLevel=len(spares))


def state(estate: Estate) -> Any:
    """What is kept at this moment; nothing where nothing is reckoned."""
    kept = estate.inventory.ha
    if kept is None or not kept.memory_percent:
        return None
    return vim.cluster.FailoverResourcesAdmissionControlInfo(
        currentCpuFailoverResourcesPercent=100,
        currentMemoryFailoverResourcesPercent=max(0, int(failover.free_percent(estate, 0))),
    )

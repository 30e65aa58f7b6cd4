"""HA admission control, from a cluster's settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vgpuctl.model.admission import Admission, FailoverPolicy, ReservedShare, Slots
from vgpuctl.vsphere.clusters import drs_places_vms
from vgpuctl.vsphere.views import moid_of

NEVER = "disabled"
#: vSphere API, ClusterDasVmSettings: with this word, or none, the cluster's default applies to a VM.
AS_THE_CLUSTER = {"clusterRestartPriority", ""}


def admission(cluster: str, config: Any, hosts: Mapping[str, str]) -> Admission | None:
    """Return the cluster's admission control; None if it refuses nothing or cannot be read. `hosts`: names by ids."""
    ha = getattr(config, "dasConfig", None)
    # vSphere API, admissionControlEnabled: only then is a power-on prevented.
    if ha is None or not ha.enabled or not ha.admissionControlEnabled or (policy := _policy(ha, hosts)) is None:
        return None
    restarts = _priority(ha.defaultVmSettings) != NEVER
    return Admission(
        cluster=cluster,
        policy=policy,
        drs_moves=drs_places_vms(config.drsConfig),
        restarts=restarts,
        exceptions=frozenset(_exceptions(config, restarts)),
    )


def _policy(ha: Any, hosts: Mapping[str, str]) -> ReservedShare | Slots | FailoverPolicy | None:
    from pyVmomi import vim  # noqa: PLC0415

    match ha.admissionControlPolicy:
        case vim.cluster.FailoverResourcesAdmissionControlPolicy() as share:
            # vSphere API: an unset failoverLevel means one host.
            level = (share.failoverLevel or 1) if share.autoComputePercentages else 0
            return ReservedShare(int(share.memoryFailoverResourcesPercent or 0), level)
        case vim.cluster.FailoverHostAdmissionControlPolicy() as spares:
            # vSphere API: vCenter lets no VM be powered on on a failover host.
            return FailoverPolicy(frozenset(hosts.get(moid_of(host), "") for host in spares.failoverHosts or ()))
        case vim.cluster.FailoverLevelAdmissionControlPolicy() as slots:
            fixed = slots.slotPolicy if isinstance(slots.slotPolicy, vim.cluster.FixedSizeSlotPolicy) else None
            return Slots(int(slots.failoverLevel or 0), int(fixed.memory or 0) if fixed else 0)
        case None if ha.failoverLevel:
            return Slots(int(ha.failoverLevel))
    # vcsim 0.56 knows HA's switches but keeps no policy.
    return None


def _exceptions(config: Any, restarts: bool) -> Iterator[str]:
    for override in config.dasVmConfig or ():
        # vSphere API: dasSettings, since VI API 2.5, counts before the older restartPriority.
        priority = _priority(override.dasSettings) or str(override.restartPriority or "")
        if priority not in AS_THE_CLUSTER and (priority != NEVER) is not restarts:
            yield moid_of(override.key)


def _priority(settings: Any) -> str:
    return str(getattr(settings, "restartPriority", None) or "")

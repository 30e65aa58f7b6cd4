"""vSphere's clusters: what DRS may do with their VMs. One request reads all clusters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vgpuctl.model.drs import Drs
from vgpuctl.vsphere.faults import translated
from vgpuctl.vsphere.session import Session
from vgpuctl.vsphere.views import moid_of

PATHS = ["name", "configurationEx"]


def drs(session: Session) -> Drs:
    with translated(session.settings.server):
        found = [{each.name: each.val for each in cluster.propSet} for cluster in _clusters(session.content)]
    settings = [(each.get("name", ""), each["configurationEx"]) for each in found if "configurationEx" in each]
    return Drs(
        clusters=frozenset(name for name, config in settings if drs_places_vms(config.drsConfig)),
        held=frozenset(vm for _, config in settings for vm in (*_overridden(config), *_tied_to_a_host(config))),
    )


def _clusters(content: Any) -> Iterator[Any]:
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    collector, spec = content.propertyCollector, vmodl.query.PropertyCollector
    view = content.viewManager.CreateContainerView(content.rootFolder, [vim.ClusterComputeResource], True)
    through = spec.TraversalSpec(name="view", type=type(view), path="view", skip=False)
    wanted = spec.FilterSpec(
        objectSet=[spec.ObjectSpec(obj=view, skip=True, selectSet=[through])],
        propSet=[spec.PropertySpec(type=vim.ClusterComputeResource, pathSet=PATHS)],
    )
    page = collector.RetrievePropertiesEx([wanted], spec.RetrieveOptions())
    while page is not None:
        yield from page.objects
        # vSphere: the server may page unasked, so its token is always followed.
        page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None
    # vSphere: a view lives as long as its session, and ours lasts.
    view.DestroyView()


def drs_places_vms(config: Any) -> bool:
    """True if DRS places VMs. With `manual` it only recommends, so a VM starts where it is."""
    # vSphere API: `manual` only generates recommendations. That a VM then starts where it is, is inferred.
    return bool(config and config.enabled) and str(config.defaultVmBehavior) != "manual"


def _overridden(config: Any) -> Iterator[str]:
    """Yield VMs for which DRS is off or only recommends. Such overrides count only if the cluster allows them."""
    # vSphere API, ClusterDrsConfigInfo: overrides are enabled unless this is false; unset means true.
    if config.drsConfig is None or config.drsConfig.enableVmBehaviorOverrides is False:
        return
    for override in config.drsVmConfig or ():
        # vSphere API, ClusterDrsVmConfigInfo: `enabled` false excludes the VM from DRS; unset means true.
        if override.enabled is False or str(override.behavior) == "manual":
            yield moid_of(override.key)


def _tied_to_a_host(config: Any) -> Iterator[str]:
    """Yield VMs that a rule ties to one host."""
    from pyVmomi import vim  # noqa: PLC0415

    groups = {group.name: group for group in config.group or ()}
    for rule in config.rule or ():
        if isinstance(rule, vim.cluster.VmHostRuleInfo) and rule.enabled and rule.mandatory:
            hosts, vms = groups.get(rule.affineHostGroupName), groups.get(rule.vmGroupName)
            if hosts is not None and vms is not None and len(hosts.host or ()) == 1:
                yield from map(moid_of, vms.vm or ())

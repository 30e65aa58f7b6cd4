"""vCenter's description of itself, and its managers."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.wire.metadata import NEWEST, wire_name
from vgpuctl.sim.vcenter.wire.vmomi import support, vim

#: Managers that an ESXi host has and a vCenter has not.
_OF_A_SINGLE_HOST = {"accountManager", "snmpSystem"}
_KNOWN = {
    "rootFolder": refs.ROOT,
    "propertyCollector": refs.COLLECTOR,
    "sessionManager": refs.SESSIONS,
    "viewManager": refs.VIEWS,
    "searchIndex": refs.SEARCH,
}


def about() -> Any:
    version = support.versionIdMap[NEWEST]
    short = ".".join(version.split(".")[:3])
    return vim.AboutInfo(
        name="VMware vCenter Server",
        fullName=f"VMware vCenter Server {short} (simulated)",
        vendor="VMware, Inc.",
        version=short,
        build="0",
        osType="linux-x64",
        productLineId="vpx",
        apiType="VirtualCenter",
        apiVersion=version,
        instanceUuid="dbed6e0c-bd88-4ef6-b594-21283e1c677f",
        licenseProductName="VMware VirtualCenter Server",
        licenseProductVersion=short.partition(".")[0] + ".0",
    )


def content() -> Any:
    """Name every manager, also those that answer NotSupported: govc crashes if one is missing (seen with 0.56)."""
    service_content = vim.ServiceInstanceContent(about=about())
    for info in vim.ServiceInstanceContent._GetPropertyList():
        is_manager = issubclass(info.type, support.ManagedObject)
        if is_manager and info.name not in _OF_A_SINGLE_HOST and _exists_in(NEWEST, info):
            setattr(service_content, info.name, _KNOWN.get(info.name) or info.type(wire_name(info.type)))
    return service_content


def managers() -> list[Any]:
    service_content = content()
    values = [getattr(service_content, info.name) for info in service_content._GetPropertyList()]
    return [value for value in values if isinstance(value, support.ManagedObject)]


def versions_xml() -> str:
    """Return the supported API versions, newest first. Clients read them before they log in."""
    # pyVmomi takes the newest version that both sides know.
    older = [version for version in support.GetServiceVersions("vim25") if support.versionIdMap[version]]
    spoken = [version for version in older if version != NEWEST and support.IsChildVersion(NEWEST, version)]
    prior = "".join(f"<version>{support.versionIdMap[version]}</version>" for version in spoken)
    return (
        '<?xml version="1.0" encoding="UTF-8"?><namespaces version="1.0"><namespace><name>urn:vim25</name>'
        f"<version>{support.versionIdMap[NEWEST]}</version><priorVersions>{prior}</priorVersions>"
        "</namespace></namespaces>"
    )


def _exists_in(version: Any, info: Any) -> bool:
    return bool(support.IsChildVersion(version, info.version))

"""A host's ImageConfigManager: the packages that are installed on it."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.vmomi import vim

#: NVIDIA's vGPU Manager for ESXi is a package of its own, with a version for each release of ESXi.
_VGPU_MANAGER, _FOR_RELEASE = "NVD-VGPU_ESXi_9.0.0_Driver", "1OEM.900.0.24755229"


# vSphere API 6.5. No property of a host has the version of NVIDIA's vGPU Manager.
@handles("fetchSoftwarePackages")
def fetch_software_packages(call: Call) -> list[Any]:
    """Return NVIDIA's package alone."""
    return [
        vim.SoftwarePackage(
            name=_VGPU_MANAGER,
            version=f"{call.subject.software.vgpu_manager}-{_FOR_RELEASE}",
            type="bootbank",
            vendor="NVIDIA",
            acceptanceLevel="vmware_accepted",
            summary="NVIDIA vGPU Manager",
            description="NVIDIA vGPU Manager",
            maintenanceModeRequired=True,
            capability=vim.SoftwarePackage.Capability(liveInstallAllowed=False, liveRemoveAllowed=False),
        )
    ]

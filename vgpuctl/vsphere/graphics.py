"""What a host reports about its vGPU types beyond their names."""

from __future__ import annotations

from vgpuctl.model.errors import VgpuctlError
from vgpuctl.model.hosts import TypeFacts
from vgpuctl.vsphere.faults import translated
from vgpuctl.vsphere.session import Session

_SERIES = {"compute": "c", "quadro": "q"}


def vgpu_types_of(session: Session, host: str) -> tuple[TypeFacts, ...]:
    """Return the host's facts about its types, since API 7.0.3.

    If the host does not answer, only the names are known.
    """
    from pyVmomi import vim  # noqa: PLC0415
    from pyVmomi.VmomiSupport import IsChildVersion  # type: ignore[attr-defined]  # noqa: PLC0415

    method = vim.host.GraphicsManager._GetMethodInfo("RetrieveVgpuProfileInfo")
    # pyVmomi raises MethodNotFound for a method that is newer than the session's version.
    if not IsChildVersion(session.version, method.version):
        return ()
    try:
        with translated(session.settings.server):
            manager = session.object("HostSystem", host).configManager.graphicsManager
            found = manager.RetrieveVgpuProfileInfo() if manager else ()
    except VgpuctlError as error:
        if error.passing:
            raise
        # Compared with vcsim 0.56, which does not know the method. Only sizes that no name gives are lost.
        return ()
    return tuple(
        TypeFacts(info.profileName, info.fbSizeInGib or None, _SERIES.get(info.profileClass, "")) for info in found
    )

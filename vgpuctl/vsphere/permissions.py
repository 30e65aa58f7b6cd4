"""Whether our user may change the VMs of a plan, as vCenter itself says: one question about all of them."""

from __future__ import annotations

from collections.abc import Iterable

from vgpuctl.basics.phrases import folded_names
from vgpuctl.model.errors import UnreachableError
from vgpuctl.model.requests import AttachVgpus, PowerOffVm, PowerOnVm, Request, ShutDownGuest, SuspendVm
from vgpuctl.vsphere.actions import VmRequest
from vgpuctl.vsphere.faults import HINT, translated
from vgpuctl.vsphere.session import Session

_INTERACT, _CONFIG = "VirtualMachine.Interact.", "VirtualMachine.Config."


def check(session: Session, requests: Iterable[Request]) -> None:
    """Raise UnreachableError if our user lacks a privilege that these requests need."""
    workers: dict[str, str] = {}
    wanted: dict[str, set[str]] = {}
    for request in requests:
        if isinstance(request, VmRequest):
            workers[request.vm] = request.worker
            wanted.setdefault(request.vm, set()).update(needed(request))
    missing: dict[str, list[str]] = {}
    for vm, privilege in _denied(session, wanted) if wanted else ():
        missing.setdefault(privilege, []).append(workers[vm])
    if missing:
        lacking = ", ".join(f"{privilege} on {folded_names(names)}" for privilege, names in sorted(missing.items()))
        raise UnreachableError(
            f"vCenter {session.settings.server} does not give this user {lacking}. Nothing was changed.", hint=HINT
        )


def needed(request: VmRequest) -> tuple[str, ...]:
    """Return the privileges that a request needs on its VM, as `vgpuctl.vsphere.rights` has them."""
    match request:
        case PowerOnVm():
            return (f"{_INTERACT}PowerOn",)
        case SuspendVm():
            return (f"{_INTERACT}Suspend",)
        case PowerOffVm() | ShutDownGuest():
            return (f"{_INTERACT}PowerOff",)
        case AttachVgpus(vgpus=vgpus, mmio_gib=mmio_gib):
            memory = (f"{_CONFIG}Resource",) if vgpus else ()
            return (f"{_CONFIG}AddRemoveDevice", *memory, *((f"{_CONFIG}AdvancedConfig",) if mmio_gib else ()))


def _denied(session: Session, wanted: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return each VM with a privilege that it lacks. If vCenter cannot answer this, the request itself will."""
    from pyVmomi import vmodl  # noqa: PLC0415

    entities = [session.object("VirtualMachine", vm) for vm in wanted]
    privileges = sorted(set().union(*wanted.values()))
    manager = session.content.authorizationManager
    with translated(session.settings.server):
        try:
            # vSphere API: one call for any number of objects and privileges.
            answers = manager.HasPrivilegeOnEntities(entities, session.key, privileges)
        except vmodl.MethodFault:
            return []
    return [
        (answer.entity._moId, each.privId)
        for answer in answers
        for each in answer.privAvailability
        if not each.isGranted and each.privId in wanted[answer.entity._moId]
    ]

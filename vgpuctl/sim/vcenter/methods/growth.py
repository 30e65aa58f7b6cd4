"""Cloning and destroying VMs over the wire; what we do not copy is refused, not swallowed."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.methods.config_spec import changes_of
from vgpuctl.sim.vcenter.physics import clone_destroy
from vgpuctl.sim.vcenter.physics.records import Changes
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, answers
from vgpuctl.sim.vcenter.wire.metadata import names_set
from vgpuctl.sim.vcenter.wire.vmomi import vim

_UNDERSTOOD = {"location", "template", "config", "powerOn", "memory"}
_PLACES = {"folder": refs.VM_FOLDER, "datastore": refs.STORE, "pool": refs.POOL}


@answers("CloneVM_Task")
def clone(call: Call, folder: Any, name: str, spec: Any) -> Any:
    _refuse_what_is_asked_beside(spec, _UNDERSTOOD)
    _refuse_what_is_asked_beside(spec.location, {*_PLACES, "host"})
    if spec.template or spec.memory:
        raise faults.not_supported("to clone to a template or with memory")
    for place, ours in (("folder", folder), *((place, getattr(spec.location, place)) for place in _PLACES)):
        if ours is not None and ours != _PLACES[place]:
            raise _nothing_there(call, ours)
    changes = changes_of(spec.config) if spec.config else Changes()
    wanted = clone_destroy.Wanted(name, _host(call, spec.location.host), changes, bool(spec.powerOn))
    return refs.of(clone_destroy.clone(call.center.estate, call.subject, wanted))


@answers("Destroy_Task")
def destroy(call: Call) -> Any:
    """Only VMs go: the rest of the inventory stands."""
    if not isinstance(call.thing.ref, vim.VirtualMachine):
        raise faults.not_supported("Destroy_Task")
    return refs.of(clone_destroy.destroy(call.center.estate, call.subject))


def _host(call: Call, host: Any) -> Any:
    if host is None:
        return call.subject.host
    if not call.center.find(host, call.session):
        raise faults.not_found(host)
    return call.center.subject(host)


def _nothing_there(call: Call, place: Any) -> Any:
    found = call.center.find(place, call.session)
    return faults.not_supported("to clone to another place") if found else faults.not_found(place)


def _refuse_what_is_asked_beside(spec: Any, understood: set[str]) -> None:
    beside = names_set(spec) - understood
    if beside:
        raise faults.not_supported("to clone with " + ", ".join(sorted(beside)))

"""Cloning and destroying VMs. What is not simulated is refused, never ignored."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.methods.config_spec import changes_of
from vgpuctl.sim.vcenter.physics import clone_destroy
from vgpuctl.sim.vcenter.physics.records import Changes
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.metadata import set_properties
from vgpuctl.sim.vcenter.wire.vmomi import vim

_SUPPORTED = {"location", "template", "config", "powerOn", "memory"}
_PLACES = {"folder": refs.VM_FOLDER, "datastore": refs.STORE, "pool": refs.POOL}


@handles("CloneVM_Task")
def clone(call: Call, folder: Any, name: str, spec: Any) -> Any:
    _refuse_unsupported(spec, _SUPPORTED)
    _refuse_unsupported(spec.location, {*_PLACES, "host"})
    if spec.template or spec.memory:
        raise faults.not_supported("to clone to a template or with memory")
    for place, given in (("folder", folder), *((place, getattr(spec.location, place)) for place in _PLACES)):
        # There is one folder, one datastore and one pool, so a clone can go nowhere else.
        if given is not None and given != _PLACES[place]:
            raise _wrong_place(call, given)
    changes = changes_of(spec.config) if spec.config else Changes()
    clone_spec = clone_destroy.CloneSpec(name, _host(call, spec.location.host), changes, bool(spec.powerOn))
    return refs.of(clone_destroy.clone(call.center.estate, call.subject, clone_spec))


@handles("Destroy_Task")
def destroy(call: Call) -> Any:
    """Only VMs can be destroyed; the rest of the inventory is fixed."""
    if not isinstance(call.target.ref, vim.VirtualMachine):
        raise faults.not_supported("Destroy_Task")
    return refs.of(clone_destroy.destroy(call.center.estate, call.subject))


def _host(call: Call, host: Any) -> Any:
    if host is None:
        return call.subject.host
    if not call.center.find(host, call.session):
        raise faults.not_found(host)
    return call.center.subject(host)


def _wrong_place(call: Call, place: Any) -> Any:
    found = call.center.find(place, call.session)
    return faults.not_supported("to clone to another place") if found else faults.not_found(place)


def _refuse_unsupported(spec: Any, supported: set[str]) -> None:
    unsupported = set_properties(spec) - supported
    if unsupported:
        raise faults.not_supported("to clone with " + ", ".join(sorted(unsupported)))

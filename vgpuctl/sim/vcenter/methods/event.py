"""The EventManager and its collectors."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import event_texts, refs
from vgpuctl.sim.vcenter.inventory.history_collector import HistoryCollector
from vgpuctl.sim.vcenter.inventory.objects import MANAGERS, InventoryObject, PropertyTable
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.vmomi import vim

EVENTS = MANAGERS["EventManager"]
COLLECTOR = PropertyTable()
#: vCenter's default for each client (`event.maxCollectors`, `task.maxCollectors`), as vcsim 0.56 knows it.
MOST_COLLECTORS = 32
_HOLDERS = (refs.ROOT, refs.VM_FOLDER, refs.HOST_FOLDER, refs.POOL)


@handles("QueryEvents")
def query_events(call: Call, wanted: Any, view: Any) -> Any:
    if view is not None:
        raise faults.not_supported("an eventViewSpec")
    return _new_collector(call, wanted).matching()


@handles("CreateCollectorForEvents")
def create_collector_for_events(call: Call, wanted: Any) -> Any:
    collector = _new_collector(call, wanted)
    collector.resize(wanted.maxCount or 0)
    ref = vim.event.EventHistoryCollector(call.required_session.next_moid("EventHistoryCollector"))
    return add_collector(call, InventoryObject(ref, COLLECTOR, collector))


def add_collector(call: Call, obj: InventoryObject) -> Any:
    if len(call.required_session.moids_of(type(obj.ref))) >= MOST_COLLECTORS:
        raise faults.invalid_state("Too many collectors.")
    return call.required_session.add(obj)


@handles("ReadNextEvents")
def read_next_events(call: Call, count: int) -> Any:
    return call.subject.read_next(count)


@handles("ReadPreviousEvents")
def read_previous_events(call: Call, count: int) -> Any:
    return call.subject.read_previous(count)


@handles("SetCollectorPageSize")
def set_collector_page_size(call: Call, count: int) -> None:
    call.subject.resize(count)
    call.center.notify_changed(call.target.moid)


@handles("ResetCollector")
def reset_collector(call: Call) -> None:
    call.subject.reset()


@handles("RewindCollector")
def rewind_collector(call: Call) -> None:
    call.subject.rewind()


@handles("DestroyCollector")
def destroy_collector(call: Call) -> None:
    call.required_session.drop(call.target.moid)


@COLLECTOR("filter")
def _filter(_: Any, collector: HistoryCollector) -> Any:
    return collector.filter


@COLLECTOR("latestPage")
def _latest_page(_: Any, collector: HistoryCollector) -> Any:
    return collector.latest_page()


@EVENTS("description")
def _description(_: Any, __: Any) -> Any:
    kinds = [
        vim.ElementDescription(key=kind, label=kind, summary=kind) for kind in ("info", "warning", "error", "user")
    ]
    return vim.event.EventDescription(category=kinds, eventInfo=event_texts.descriptions())


@EVENTS("latestEvent")
def _latest_event(context: Any, _: Any) -> Any:
    events = context.center.history.events
    return events[-1] if events else None


@EVENTS("maxCollector")
def _most(_: Any, __: Any) -> int:
    return MOST_COLLECTORS


def _new_collector(call: Call, wanted: Any) -> HistoryCollector:
    entity = wanted.entity.entity if wanted.entity else None
    if entity is not None and not call.center.find(entity, call.session):
        raise faults.not_found(entity)
    return HistoryCollector(wanted, lambda: call.center.history.events, _matches, lambda event: event.key)


def _matches(event: Any, wanted: Any) -> bool:
    # vSphere API: `type` is the older form of `eventTypeId`.
    kinds = set(wanted.eventTypeId) | {kind._wsdlName for kind in wanted.type}
    return (
        in_time(event.createdTime, wanted.time)
        and (not wanted.userName or event.userName in wanted.userName.userList)
        and (not wanted.eventChainId or event.chainId == wanted.eventChainId)
        and (not wanted.category or event_texts.category_of(event) in wanted.category)
        and (not kinds or any(kind._wsdlName in kinds for kind in type(event).__mro__ if hasattr(kind, "_wsdlName")))
        and (not wanted.entity or _concerns(event, wanted.entity))
    )


def in_time(when: Any, wanted: Any) -> bool:
    if not wanted:
        return True
    return not (wanted.beginTime and when < wanted.beginTime) and not (wanted.endTime and when > wanted.endTime)


def _concerns(event: Any, wanted: Any) -> bool:
    """For the root folder vCenter returns all events, for other folders those of the objects in them."""
    if wanted.entity == refs.ROOT and wanted.recursion != "children":
        return True
    if not event.vm:
        return False
    if wanted.entity in _HOLDERS:
        return bool(wanted.recursion != "self")
    named = (event.vm.vm, event.host.host, event.computeResource.computeResource, event.datacenter.datacenter)
    return wanted.entity in named

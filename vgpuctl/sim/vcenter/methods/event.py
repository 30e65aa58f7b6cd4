"""The EventManager and its collectors."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import event_texts, refs
from vgpuctl.sim.vcenter.inventory.scrolls import Scroll
from vgpuctl.sim.vcenter.inventory.things import MANAGERS, PropertyTable, Thing
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, answers
from vgpuctl.sim.vcenter.wire.vmomi import vim

EVENTS = MANAGERS["EventManager"]
SCROLL = PropertyTable()
MOST_COLLECTORS = 32
_HOLDERS = (refs.ROOT, refs.VM_FOLDER, refs.HOST_FOLDER, refs.POOL)


@answers("QueryEvents")
def query_events(call: Call, wanted: Any, view: Any) -> Any:
    if view is not None:
        raise faults.not_supported("an eventViewSpec")
    return _scroll(call, wanted).found()


@answers("CreateCollectorForEvents")
def create_collector_for_events(call: Call, wanted: Any) -> Any:
    scroll = _scroll(call, wanted)
    scroll.resize(wanted.maxCount or 0)
    ref = vim.event.EventHistoryCollector(call.member.fresh_moid("EventHistoryCollector"))
    return add_collector(call, Thing(ref, SCROLL, scroll))


def add_collector(call: Call, thing: Thing) -> Any:
    if len(call.member.moids_of(type(thing.ref))) >= MOST_COLLECTORS:
        raise faults.invalid_state("Too many collectors.")
    return call.member.add(thing)


@answers("ReadNextEvents")
def read_next_events(call: Call, count: int) -> Any:
    return call.subject.read_next(count)


@answers("ReadPreviousEvents")
def read_previous_events(call: Call, count: int) -> Any:
    return call.subject.read_previous(count)


@answers("SetCollectorPageSize")
def set_collector_page_size(call: Call, count: int) -> None:
    call.subject.resize(count)
    call.center.tell(call.thing.moid)


@answers("ResetCollector")
def reset_collector(call: Call) -> None:
    call.subject.reset()


@answers("RewindCollector")
def rewind_collector(call: Call) -> None:
    call.subject.rewind()


@answers("DestroyCollector")
def destroy_collector(call: Call) -> None:
    call.member.drop(call.thing.moid)


@SCROLL("filter")
def _filter(_: Any, scroll: Scroll) -> Any:
    return scroll.filter


@SCROLL("latestPage")
def _latest_page(_: Any, scroll: Scroll) -> Any:
    return scroll.latest_page()


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


def _scroll(call: Call, wanted: Any) -> Scroll:
    entity = wanted.entity.entity if wanted.entity else None
    if entity is not None and not call.center.find(entity, call.session):
        raise faults.not_found(entity)
    return Scroll(wanted, lambda: call.center.history.events, _matches, lambda event: event.key)


def _matches(event: Any, wanted: Any) -> bool:
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
    """Of its root folder's events a vCenter tells all, of other folders' what happened to the things in them."""
    if wanted.entity == refs.ROOT and wanted.recursion != "children":
        return True
    if not event.vm:
        return False
    if wanted.entity in _HOLDERS:
        return bool(wanted.recursion != "self")
    named = (event.vm.vm, event.host.host, event.computeResource.computeResource, event.datacenter.datacenter)
    return wanted.entity in named

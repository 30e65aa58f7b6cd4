"""The PropertyCollector's methods."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from vgpuctl.sim.vcenter.collector.collectors import Collector
from vgpuctl.sim.vcenter.collector.filters import Filter, Scope, object_content
from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.things import PropertyTable, Thing
from vgpuctl.sim.vcenter.wire import faults, rights
from vgpuctl.sim.vcenter.wire.dispatch import Call, answers
from vgpuctl.sim.vcenter.wire.metadata import UnknownPath
from vgpuctl.sim.vcenter.wire.serialiser import Xml, element, text
from vgpuctl.sim.vcenter.wire.vmomi import vmodl

COLLECTOR = PropertyTable()
FILTER = PropertyTable()
_MOST_PAGES = 32
"""Tokens that nobody comes back with are forgotten, the oldest first."""
_DEFAULT = f"default-{refs.COLLECTOR._moId}"


@answers("CreatePropertyCollector")
def create_property_collector(call: Call) -> Any:
    ref = vmodl.query.PropertyCollector(call.member.fresh_moid("PropertyCollector"))
    collector = Collector(call.center)
    return call.member.add(Thing(ref, COLLECTOR, collector), on_end=collector.close)


@answers("DestroyPropertyCollector")
def destroy_property_collector(call: Call) -> None:
    for moid in list(_collector(call).filters):
        call.member.drop(moid)
    call.member.drop(call.thing.moid)


@answers("CreateFilter")
def create_filter(call: Call, spec: Any, partial_updates: bool) -> Any:
    collector = _collector(call)
    ref = vmodl.query.PropertyCollector.Filter(call.member.fresh_moid("PropertyFilter"))
    scope = Scope(call.center, call.member, call.version, spec)
    collector.add(Filter(ref, scope, partial_updates))
    return call.member.add(Thing(ref, FILTER, spec), on_end=lambda: collector.remove(ref._moId))


@answers("DestroyPropertyFilter")
def destroy_property_filter(call: Call) -> None:
    call.member.drop(call.thing.moid)


@answers("WaitForUpdatesEx")
async def wait_for_updates_ex(call: Call, version: str | None, options: Any) -> Xml | None:
    seconds = options.maxWaitSeconds if options else None
    limit = options.maxObjectUpdates if options else None
    if seconds is not None and seconds < 0:
        raise faults.invalid_argument("options.maxWaitSeconds")
    if limit is not None and limit < 1:
        raise faults.invalid_argument("options.maxObjectUpdates")
    return await _collector(call).wait(version or "", seconds, limit)


@answers("WaitForUpdates")
async def wait_for_updates(call: Call, version: str | None) -> Xml | None:
    return await _collector(call).wait(version or "", None, None)


@answers("CheckForUpdates")
async def check_for_updates(call: Call, version: str | None) -> Xml | None:
    return await _collector(call).wait(version or "", 0, None)


@answers("CancelWaitForUpdates")
def cancel_wait_for_updates(call: Call) -> None:
    _collector(call).cancel()


@answers("RetrieveProperties")
def retrieve_properties(call: Call, specs: list[Any]) -> Xml:
    return Xml("".join(_contents(call, specs, "returnval")))


@answers("RetrievePropertiesEx")
def retrieve_properties_ex(call: Call, specs: list[Any], options: Any) -> Xml | None:
    limit = options.maxObjects if options else None
    if limit is not None and limit < 1:
        raise faults.invalid_argument("options.maxObjects")
    return _page(call, list(_contents(call, specs, "objects")), limit)


@answers("ContinueRetrievePropertiesEx")
def continue_retrieve_properties_ex(call: Call, token: str) -> Xml | None:
    if token not in call.member.pages:
        raise faults.invalid_argument("token")
    return _page(call, *call.member.pages.pop(token))


@answers("CancelRetrievePropertiesEx")
def cancel_retrieve_properties_ex(call: Call, token: str) -> None:
    if call.member.pages.pop(token, None) is None:
        raise faults.invalid_argument("token")


@answers("Fetch")
def fetch(call: Call, path: str) -> Any:
    try:
        if lacking := rights.to_read(call.session, type(call.thing.ref), path):
            raise faults.no_permission(call.thing.ref, lacking)
        return call.center.read(call.thing, path, call.session)
    except UnknownPath:
        raise faults.invalid_property(path) from None


def _contents(call: Call, specs: Iterable[Any], name: str) -> Iterator[Xml]:
    for spec in specs:
        scope = Scope(call.center, call.member, call.version, spec)
        for moid in scope.selection.selected:
            found = scope.values(moid)
            if found:
                yield object_content(name, *found)


def _page(call: Call, objects: list[Xml], limit: int | None) -> Xml | None:
    """The server may page unasked; it does so where `page_limit` says it."""
    allowed = min(filter(None, (limit, call.center.page_limit)), default=len(objects))
    if not objects:
        return None
    token = ""
    if len(objects) > allowed:
        token = secrets.token_hex(8)
        pages = call.member.pages
        pages[token] = (objects[allowed:], limit)
        if len(pages) > _MOST_PAGES:
            del pages[next(iter(pages))]
    return element("returnval", text("token", token) if token else "", *objects[:allowed])


def _collector(call: Call) -> Collector:
    """The one that every session finds in the service content is its own all the same."""
    if call.thing.ref != refs.COLLECTOR:
        collector: Collector = call.subject
        return collector
    things = call.member.things
    if _DEFAULT not in things:
        made = Collector(call.center)
        ref = vmodl.query.PropertyCollector(_DEFAULT)
        call.member.add(Thing(ref, COLLECTOR, made), on_end=made.close)
    default: Collector = things[_DEFAULT].subject
    return default


@COLLECTOR("filter")
def _filters(_: Any, collector: Collector) -> list[Any]:
    return [each.ref for each in collector.filters.values()]


@FILTER("spec")
def _spec(_: Any, spec: Any) -> Any:
    return spec

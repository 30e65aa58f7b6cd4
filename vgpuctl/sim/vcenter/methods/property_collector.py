"""The PropertyCollector's methods."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from vgpuctl.sim.vcenter.collector.collectors import Collector
from vgpuctl.sim.vcenter.collector.filters import Filter, FilterScope, object_content
from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.objects import InventoryObject, PropertyTable
from vgpuctl.sim.vcenter.wire import faults, rights
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.metadata import UnknownPath
from vgpuctl.sim.vcenter.wire.serialiser import Xml, element, text
from vgpuctl.sim.vcenter.wire.vmomi import vmodl

COLLECTOR = PropertyTable()
FILTER = PropertyTable()
_MAX_PAGES = 32
"""The oldest tokens are forgotten, in case their client never returns."""
_DEFAULT = f"default-{refs.COLLECTOR._moId}"


@handles("CreatePropertyCollector")
def create_property_collector(call: Call) -> Any:
    ref = vmodl.query.PropertyCollector(call.required_session.next_moid("PropertyCollector"))
    collector = Collector(call.center)
    return call.required_session.add(InventoryObject(ref, COLLECTOR, collector), on_end=collector.close)


@handles("DestroyPropertyCollector")
def destroy_property_collector(call: Call) -> None:
    for moid in list(_collector(call).filters):
        call.required_session.drop(moid)
    call.required_session.drop(call.target.moid)


@handles("CreateFilter")
def create_filter(call: Call, spec: Any, partial_updates: bool) -> Any:
    collector = _collector(call)
    ref = vmodl.query.PropertyCollector.Filter(call.required_session.next_moid("PropertyFilter"))
    scope = FilterScope(call.center, call.required_session, call.version, spec)
    collector.add(Filter(ref, scope, partial_updates))
    return call.required_session.add(InventoryObject(ref, FILTER, spec), on_end=lambda: collector.remove(ref._moId))


@handles("DestroyPropertyFilter")
def destroy_property_filter(call: Call) -> None:
    call.required_session.drop(call.target.moid)


@handles("WaitForUpdatesEx")
async def wait_for_updates_ex(call: Call, version: str | None, options: Any) -> Xml | None:
    seconds = options.maxWaitSeconds if options else None
    limit = options.maxObjectUpdates if options else None
    # vSphere API: a negative `maxWaitSeconds`, and `maxObjectUpdates` below 1, are illegal.
    if seconds is not None and seconds < 0:
        raise faults.invalid_argument("options.maxWaitSeconds")
    if limit is not None and limit < 1:
        raise faults.invalid_argument("options.maxObjectUpdates")
    return await _collector(call).wait(version or "", seconds, limit)


@handles("WaitForUpdates")
async def wait_for_updates(call: Call, version: str | None) -> Xml | None:
    return await _collector(call).wait(version or "", None, None)


@handles("CheckForUpdates")
async def check_for_updates(call: Call, version: str | None) -> Xml | None:
    # vSphere API: CheckForUpdates is a wait of zero seconds.
    return await _collector(call).wait(version or "", 0, None)


@handles("CancelWaitForUpdates")
def cancel_wait_for_updates(call: Call) -> None:
    _collector(call).cancel()


@handles("RetrieveProperties")
def retrieve_properties(call: Call, specs: list[Any]) -> Xml:
    return Xml("".join(_contents(call, specs, "returnval")))


@handles("RetrievePropertiesEx")
def retrieve_properties_ex(call: Call, specs: list[Any], options: Any) -> Xml | None:
    limit = options.maxObjects if options else None
    if limit is not None and limit < 1:
        raise faults.invalid_argument("options.maxObjects")
    return _page(call, list(_contents(call, specs, "objects")), limit)


@handles("ContinueRetrievePropertiesEx")
def continue_retrieve_properties_ex(call: Call, token: str) -> Xml | None:
    # Measured with vcsim 0.56: a token is refused once its page was read.
    if token not in call.required_session.pages:
        raise faults.invalid_argument("token")
    return _page(call, *call.required_session.pages.pop(token))


@handles("CancelRetrievePropertiesEx")
def cancel_retrieve_properties_ex(call: Call, token: str) -> None:
    if call.required_session.pages.pop(token, None) is None:
        raise faults.invalid_argument("token")


@handles("Fetch")
def fetch(call: Call, path: str) -> Any:
    try:
        needed = rights.privilege_to_read(type(call.target.ref), path)
        if needed and call.session and needed not in call.center.privileges_on(call.target.ref, call.session):
            raise faults.no_permission(call.target.ref, needed)
        return call.center.read(call.target, path, call.session)
    except UnknownPath:
        raise faults.invalid_property(path) from None


def _contents(call: Call, specs: Iterable[Any], name: str) -> Iterator[Xml]:
    for spec in specs:
        scope = FilterScope(call.center, call.required_session, call.version, spec)
        for moid in scope.selection.selected:
            found = scope.values(moid)
            if found:
                yield object_content(name, *found)


def _page(call: Call, objects: list[Xml], limit: int | None) -> Xml | None:
    """Return one page. With `page_limit` the server pages unasked, as the API allows."""
    allowed = min(filter(None, (limit, call.center.page_limit)), default=len(objects))
    if not objects:
        return None
    token = ""
    if len(objects) > allowed:
        # vSphere API: the rest is fetched by the token, also where the server limits a page by itself.
        token = secrets.token_hex(8)
        pages = call.required_session.pages
        pages[token] = (objects[allowed:], limit)
        if len(pages) > _MAX_PAGES:
            del pages[next(iter(pages))]
    return element("returnval", text("token", token) if token else "", *objects[:allowed])


def _collector(call: Call) -> Collector:
    """Return the called collector. The one in the service content is a separate collector for each session."""
    if call.target.ref != refs.COLLECTOR:
        collector: Collector = call.subject
        return collector
    # vSphere API: filters belong to a session, and end with it.
    objects = call.required_session.objects
    if _DEFAULT not in objects:
        new = Collector(call.center)
        ref = vmodl.query.PropertyCollector(_DEFAULT)
        call.required_session.add(InventoryObject(ref, COLLECTOR, new), on_end=new.close)
    default: Collector = objects[_DEFAULT].subject
    return default


@COLLECTOR("filter")
def _filters(_: Any, collector: Collector) -> list[Any]:
    return [each.ref for each in collector.filters.values()]


@FILTER("spec")
def _spec(_: Any, spec: Any) -> Any:
    return spec

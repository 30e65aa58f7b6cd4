"""All managed objects of one vCenter, by their ids, and news of what changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.history import History
from vgpuctl.sim.vcenter.inventory.host_properties import GRAPHICS_MANAGER, HOST
from vgpuctl.sim.vcenter.inventory.property_cache import Key, PropertyCache
from vgpuctl.sim.vcenter.inventory.task_properties import TASK
from vgpuctl.sim.vcenter.inventory.things import MANAGERS, PropertyTable, Thing, read
from vgpuctl.sim.vcenter.inventory.tree import tree
from vgpuctl.sim.vcenter.inventory.vm_properties import VM
from vgpuctl.sim.vcenter.physics.estate import Estate
from vgpuctl.sim.vcenter.physics.records import Host, Record, Task, Vm
from vgpuctl.sim.vcenter.wire import service
from vgpuctl.sim.vcenter.wire.serialiser import Xml, leaf
from vgpuctl.sim.vcenter.wire.sessions import Session, Sessions
from vgpuctl.sim.vcenter.wire.vmomi import vim

SERVICE = PropertyTable()
Listener = Callable[[str], None]


class Context:
    """What a property may depend on beside its own subject.

    It notices whether it was asked for anything: if not, the value holds until its own object is said to have changed.
    """

    __slots__ = ("_center", "_session", "asked")

    def __init__(self, center: Center, session: Session | None) -> None:
        self._center = center
        self._session = session
        self.asked = False

    @property
    def center(self) -> Center:
        self.asked = True
        return self._center

    @property
    def session(self) -> Session | None:
        self.asked = True
        return self._session

    @property
    def estate(self) -> Estate:
        return self.center.estate

    @property
    def sessions(self) -> Sessions:
        return self.center.sessions


class Center:
    def __init__(self, estate: Estate, sessions: Sessions) -> None:
        self.estate = estate
        self.sessions = sessions
        self.page_limit: int | None = None
        self._kept = PropertyCache()
        self._reckoned: dict[Hashable, Any] = {}
        self._listeners: dict[Listener, None] = {}
        self._things = {thing.moid: thing for thing in self._standing_things()}
        self.history = History(estate)
        self.history.on_event = self._tell_of_history
        estate.subscribe(self._changed)

    def find(self, ref: Any, session: Session | None) -> Thing | None:
        """A thing by its reference, which must not claim to be of another type."""
        thing = self._by_moid(ref._moId, session)
        return thing if thing and isinstance(thing.ref, type(ref)) else None

    def read(self, thing: Thing, path: str, session: Session | None) -> Any:
        return read(thing, path, self.context(session))

    def xml(self, thing: Thing, key: Key, session: Session | None) -> Xml | None:
        """A property's value as `<val>`; none where it is unset."""
        known = self._kept.of(thing.moid)
        if key in known:
            return known[key]
        context = self.context(session)
        xml = _write(thing, key, context)
        if not context.asked:
            self._kept.keep(thing.moid, key, xml)
        return xml

    def while_vms_stay(self, key: Hashable, reckon: Callable[[], Any]) -> Any:
        """What is reckoned from the inventory, which stands but for its VMs."""
        if key not in self._reckoned:
            self._reckoned[key] = reckon()
        return self._reckoned[key]

    def context(self, session: Session | None) -> Context:
        return Context(self, session)

    def subject(self, ref: Any) -> Any:
        """The VM or host behind a reference that has been found already."""
        return self._things[ref._moId].subject

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` the id of each thing that changes; the answer is a function that ends it."""
        self._listeners[listener] = None
        return partial(self._listeners.pop, listener, None)

    def tell(self, moid: str) -> None:
        """Something behind this id has changed."""
        self._kept.forget(moid)
        for listener in tuple(self._listeners):
            listener(moid)

    def _by_moid(self, moid: str, session: Session | None) -> Thing | None:
        found = self._things.get(moid)
        if not found and session:
            found = session.things.get(moid)
        if not found and moid in self.estate.tasks:
            task = self.estate.tasks[moid]
            found = Thing(refs.of(task), TASK, task)
        return found

    def _changed(self, changed: Record) -> None:
        if isinstance(changed, Vm):
            self._let_come_and_go(changed)
        self.tell(changed.moid)
        if isinstance(changed, Host):
            self.tell(refs.graphics_manager(changed)._moId)
        if isinstance(changed, Task):
            self.tell(refs.TASKS._moId)
            self._tell_all_of(vim.TaskHistoryCollector)

    def _tell_of_history(self) -> None:
        self.tell(refs.EVENTS._moId)
        self._tell_all_of(vim.event.EventHistoryCollector)

    def _tell_all_of(self, kind: Any) -> None:
        """Of things that belong to sessions."""
        for session in self.sessions.all():
            for moid in session.moids_of(kind):
                self.tell(moid)

    def _let_come_and_go(self, vm: Vm) -> None:
        exists = self.estate.vms.get(vm.name) is vm
        if exists == (vm.moid in self._things):
            return
        if exists:
            self._things[vm.moid] = Thing(refs.of(vm), VM, vm)
        else:
            del self._things[vm.moid]
        self._reckoned.clear()
        for moid in (vm.host.moid, *(ref._moId for ref in refs.HOLDERS_OF_VMS)):
            self.tell(moid)
        self._tell_all_of(vim.view.ContainerView)

    def _standing_things(self) -> list[Thing]:
        estate = self.estate
        hosts = list(estate.hosts.values())
        standing = [
            Thing(refs.SERVICE, SERVICE, None),
            *(Thing(refs.of(host), HOST, host) for host in hosts),
            *(Thing(refs.graphics_manager(host), GRAPHICS_MANAGER, host) for host in hosts),
            *(Thing(refs.of(vm), VM, vm) for vm in estate.vms.values()),
        ]
        managers = (Thing(ref, MANAGERS[ref._moId], None) for ref in service.managers() if ref._moId != refs.ROOT._moId)
        return [*standing, *managers, *tree(estate)]


def _write(thing: Thing, key: Key, context: Context) -> Xml | None:
    path, version = key
    if writer := thing.table.writers.get(path):
        return Xml(writer(thing.subject, version))
    value = read(thing, path, context)
    return None if value is None else leaf(value, version)


@SERVICE("content")
def _content(_: Any, __: Any) -> Any:
    return service.content()


@SERVICE("serverClock")
def _server_clock(context: Context, _: Any) -> Any:
    return context.estate.clock.utc()

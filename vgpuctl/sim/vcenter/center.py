"""All managed objects of one vCenter, by their ids, and news of what changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from vgpuctl.sim.vcenter import refs, service
from vgpuctl.sim.vcenter.estate import Estate
from vgpuctl.sim.vcenter.history import History
from vgpuctl.sim.vcenter.host_properties import GRAPHICS_MANAGER, HOST
from vgpuctl.sim.vcenter.records import Record, Task, Vm
from vgpuctl.sim.vcenter.sessions import Session, Sessions
from vgpuctl.sim.vcenter.task_properties import TASK
from vgpuctl.sim.vcenter.things import MANAGERS, PropertyTable, Thing, read
from vgpuctl.sim.vcenter.tree import tree
from vgpuctl.sim.vcenter.vm_properties import VM
from vgpuctl.sim.vcenter.vmomi import vim

SERVICE = PropertyTable()
Listener = Callable[[str], None]


class Context:
    """What a property may depend on beside its own subject."""

    def __init__(self, center: Center, session: Session | None) -> None:
        self.center = center
        self.estate = center.estate
        self.sessions = center.sessions
        self.session = session


class Center:
    """`vms_came_and_went` counts: what was reckoned from all VMs holds as long as it stands still."""

    def __init__(self, estate: Estate, sessions: Sessions) -> None:
        self.estate = estate
        self.sessions = sessions
        self.page_limit: int | None = None
        self.vms_came_and_went = 0
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
        self.vms_came_and_went += 1
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


@SERVICE("content")
def _content(_: Any, __: Any) -> Any:
    return service.content()


@SERVICE("serverClock")
def _server_clock(context: Context, _: Any) -> Any:
    return context.estate.clock.utc()

"""All managed objects of one vCenter by id, and notifications of their changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.host_properties import GRAPHICS_MANAGER, HOST, IMAGE_MANAGER
from vgpuctl.sim.vcenter.inventory.objects import MANAGERS, InventoryObject, PropertyTable, read
from vgpuctl.sim.vcenter.inventory.permissions import (
    EVERYTHING,
    READING,
    SYSTEM_VIEW,
    Permission,
    Permissions,
    Privileges,
)
from vgpuctl.sim.vcenter.inventory.property_cache import Key, PropertyCache
from vgpuctl.sim.vcenter.inventory.task_properties import TASK
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

    It records whether it was used. If not, the value stays valid until its own object changes.
    """

    __slots__ = ("_center", "_session", "was_used")

    def __init__(self, center: Center, session: Session | None) -> None:
        self._center = center
        self._session = session
        self.was_used = False

    @property
    def center(self) -> Center:
        self.was_used = True
        return self._center

    @property
    def session(self) -> Session | None:
        self.was_used = True
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
        # vSphere API: policy may limit a page below `maxObjects`, or where a client asks for no limit.
        self.page_limit: int | None = None
        self._cache = PropertyCache()
        self._computed: dict[Hashable, Any] = {}
        self._listeners: dict[Listener, None] = {}
        self._objects = {obj.moid: obj for obj in self._initial_objects()}
        self.permissions = Permissions(self._parents)
        for account in sessions.accounts.values():
            if account.role is not None:
                self.permissions.set(Permission(refs.ROOT, account.name, account.role, propagate=True))
        estate.subscribe(self._changed)

    def find(self, ref: Any, session: Session | None) -> InventoryObject | None:
        """Return an object by reference. A reference with another type finds nothing."""
        obj = self._by_moid(ref._moId, session)
        # Measured with vcsim 0.56: an object that is not there is ManagedObjectNotFound, which names the reference.
        return obj if obj and isinstance(obj.ref, type(ref)) else None

    def privileges_on(self, ref: Any, session: Session) -> Privileges:
        """Return what the session's user may do on an object. What belongs to no entity is the root folder's."""
        if isinstance(ref, vim.ManagedEntity):
            granted = self.permissions.on(session.user, ref)
            # Inferred: every user that may log in sees the root folder, so that views may begin there.
            return granted | {SYSTEM_VIEW} if ref == refs.ROOT and granted is not EVERYTHING else granted
        entity = self._entity_of(ref)
        granted = self.permissions.on(session.user, entity or refs.ROOT)
        # vSphere: what is no part of the inventory, such as managers and views, may be read by each user.
        return granted if entity or granted is EVERYTHING else granted.union(READING)

    def notify_all_changed(self) -> None:
        """Let each filter look again: who sees what has changed."""
        for moid in tuple(self._objects):
            self.notify_changed(moid)

    def read(self, obj: InventoryObject, path: str, session: Session | None) -> Any:
        return read(obj, path, self.context(session))

    def xml(self, obj: InventoryObject, key: Key, session: Session | None) -> Xml | None:
        """Return a property's value as `<val>`; None if it is unset."""
        known = self._cache.values_of(obj.moid)
        if key in known:
            return known[key]
        context = self.context(session)
        xml = _to_xml(obj, key, context)
        if not context.was_used:
            self._cache.store(obj.moid, key, xml)
        return xml

    def cached_until_vms_change(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return what `compute` returns, cached until a VM is created or destroyed."""
        if key not in self._computed:
            self._computed[key] = compute()
        return self._computed[key]

    def context(self, session: Session | None) -> Context:
        return Context(self, session)

    def subject(self, ref: Any) -> Any:
        """Return the VM or host behind a reference that was found before."""
        return self._objects[ref._moId].subject

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with the id of each object that changes. Returns a function that ends this."""
        self._listeners[listener] = None
        return partial(self._listeners.pop, listener, None)

    def notify_changed(self, moid: str) -> None:
        """Forget the cached values of an object and call the listeners."""
        self._cache.forget(moid)
        for listener in tuple(self._listeners):
            listener(moid)

    def _entity_of(self, ref: Any) -> Any:
        """Return the entity that a task or a part of a host or cluster belongs to; None for all else."""
        if isinstance(ref, vim.Task):
            task = self.estate.tasks.get(ref._moId)
            found = self._objects.get(task.entity_moid) if task else None
            return found.ref if found else None
        if isinstance(ref, vim.host.GraphicsManager):
            found = self._objects.get(ref._moId)
            return refs.of(found.subject) if found else None
        found = self._objects.get(ref._moId) if isinstance(ref, vim.EnvironmentBrowser) else None
        return refs.of(found.subject) if found else None

    def _parents(self, entity: Any) -> tuple[Any, ...]:
        """Return what an entity inherits permissions from. A VM inherits from its folder and from its host."""
        found = self._objects.get(entity._moId)
        if not found:
            return ()
        if isinstance(entity, vim.VirtualMachine):
            return (refs.of(found.subject.folder), refs.of(found.subject.host))
        parent = self.read(found, "parent", None)
        return (parent,) if parent else ()

    def _by_moid(self, moid: str, session: Session | None) -> InventoryObject | None:
        found = self._objects.get(moid)
        # vSphere: views, collectors and filters belong to one session; another session does not find them.
        if not found and session:
            found = session.objects.get(moid)
        # Tasks are many and short-lived, so their objects are made on demand.
        if not found and moid in self.estate.tasks:
            task = self.estate.tasks[moid]
            found = InventoryObject(refs.of(task), TASK, task)
        return found

    def _changed(self, changed: Record) -> None:
        if isinstance(changed, Vm):
            self._add_or_remove_vm(changed)
        self.notify_changed(changed.moid)
        if isinstance(changed, Host):
            # vSphere API: a host and its GraphicsManager both have `graphicsInfo`.
            self.notify_changed(refs.graphics_manager(changed)._moId)
        if isinstance(changed, Task):
            self.notify_changed(refs.TASKS._moId)

    def _notify_views(self) -> None:
        """Notify about the container views of all sessions."""
        for session in self.sessions.all():
            for moid in session.moids_of(vim.view.ContainerView):
                self.notify_changed(moid)

    def _add_or_remove_vm(self, vm: Vm) -> None:
        exists = self.estate.vms.get(vm.guest) is vm
        if exists == (vm.moid in self._objects):
            return
        if exists:
            self._objects[vm.moid] = InventoryObject(refs.of(vm), VM, vm)
        else:
            del self._objects[vm.moid]
        self._computed.clear()
        for moid in refs.holders_of(vm):
            self.notify_changed(moid)
        self._notify_views()

    def _initial_objects(self) -> list[InventoryObject]:
        estate = self.estate
        hosts = list(estate.hosts.values())
        fixed = [
            InventoryObject(refs.SERVICE, SERVICE, None),
            *(InventoryObject(refs.of(host), HOST, host) for host in hosts),
            *(InventoryObject(refs.graphics_manager(host), GRAPHICS_MANAGER, host) for host in hosts),
            *(InventoryObject(refs.image_manager(host), IMAGE_MANAGER, host) for host in hosts),
            *(InventoryObject(refs.of(vm), VM, vm) for vm in estate.vms.values()),
        ]
        managers = (
            InventoryObject(ref, MANAGERS[ref._moId], None)
            for ref in service.managers()
            if ref._moId != refs.ROOT._moId
        )
        return [*fixed, *managers, *tree(estate)]


def _to_xml(obj: InventoryObject, key: Key, context: Context) -> Xml | None:
    path, version = key
    if writer := obj.table.writers.get(path):
        return Xml(writer(obj.subject, version))
    value = read(obj, path, context)
    return None if value is None else leaf(value, version)


@SERVICE("content")
def _content(_: Any, __: Any) -> Any:
    return service.content()


@SERVICE("serverClock")
def _server_clock(context: Context, _: Any) -> Any:
    return context.estate.clock.utc()

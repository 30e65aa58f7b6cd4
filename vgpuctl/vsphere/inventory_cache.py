"""Everything vCenter has reported so far, and our views of it. Not safe for several threads: the stream guards it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from vgpuctl.basics.typed import checked
from vgpuctl.model.admission import Admission
from vgpuctl.model.errors import in_short
from vgpuctl.model.fleet import Task
from vgpuctl.model.hosts import Host
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.vsphere import partial_updates, views
from vgpuctl.vsphere.admission import admission
from vgpuctl.vsphere.property_filters import CLUSTER_SETTINGS
from vgpuctl.vsphere.views import Outline, Vm, moid_of

#: vSphere API: a cluster is a kind of ComputeResource. A host outside of clusters has a plain one.
_KINDS = {"ClusterComputeResource": "ComputeResource"}
Made = TypeVar("Made")
_WORDS = {
    "VirtualMachine": "vm",
    "HostSystem": "host",
    "ComputeResource": "cluster",
    "Task": "task",
    "Datastore": "datastore",
}
_OUTLINE_PATHS = {"name", "parent", "runtime.host", "config.uuid"}


class InventoryCache:
    """Raw properties by kind and id. A view is kept until its object changes: same object, same view.

    `outlines_changed`: since it was last set to False, something changed that decides which VMs matter.
    `must_refetch`: a change did not fit into what is known.
    """

    def __init__(self) -> None:
        self.outlines_changed, self.must_refetch = True, False
        self._raw: dict[str, dict[str, dict[str, Any]]] = {}
        self._references: dict[str, Any] = {}
        self._outlines: dict[str, Outline] = {}
        self._vms: dict[str, Vm] = {}
        self._hosts: dict[str, Host] = {}
        self._admissions: dict[str, Admission | None] = {}
        self._tasks: dict[str, tuple[str, Task]] = {}
        self._tasks_of: dict[str, tuple[Task, ...]] | None = None
        self._unreadable: dict[str, Unreadable] = {}
        self._store_names_now: dict[str, str] | None = None

    def apply(self, update: Any) -> None:
        """Apply the update of one object."""
        kind = type(update.obj).__name__.rsplit(".", 1)[-1]
        objects, moid = self._raw.setdefault(_KINDS.get(kind, kind), {}), update.obj._moId
        if update.kind == "leave":
            objects.pop(moid, None)
            self._references.pop(moid, None)
        else:
            raw = objects.setdefault(moid, {})
            if update.kind == "enter":
                # vSphere: what enters a filter comes whole. Only later changes may be nested (decision 0010).
                raw.update({change.name: change.val for change in update.changeSet or ()})
            elif not all(partial_updates.apply(raw, change) for change in update.changeSet or ()):
                # Decision 0010: everything is asked for once more, instead of guessing.
                self.must_refetch = True
            if kind == "VirtualMachine":
                self._references[moid] = update.obj
        self._forget(kind, moid, {change.name for change in update.changeSet or ()})

    def _forget(self, kind: str, moid: str, changed: set[str]) -> None:
        """Drop outdated views.

        A change of a VM or task affects only its own view; a change of folders or clusters may affect every path.
        """
        self._unreadable.pop(moid, None)
        if kind == "Datastore" and (not changed or "name" in changed):
            # It came, went or was renamed: VMs may write to another datastore of this name.
            self._store_names_now = None
            self._vms.clear()
        if kind in {"Task", "Datastore"}:
            self._tasks.pop(moid, None)
            self._tasks_of = None
            return
        self._vms.pop(moid, None)
        self._hosts.pop(moid, None)
        if kind == "VirtualMachine" and changed and not changed & _OUTLINE_PATHS:
            return
        self.outlines_changed = True
        self._outlines.pop(moid, None)
        if kind == "HostSystem" and "name" in changed:
            self._hosts.clear()
            self._admissions.clear()
        if kind == "HostSystem" and "datastore" in changed:
            self._vms.clear()
        if kind not in {"VirtualMachine", "HostSystem"}:
            self._outlines.clear()
            self._hosts.clear()
            self._admissions.clear()
            self._vms.clear()

    def unreadable(self) -> dict[str, Unreadable]:
        """Return the objects that could not be read last time, by their ids."""
        return dict(self._unreadable)

    def _view(self, kind: str, moid: str, make: Callable[[], Made], fallback: Callable[[str], Made]) -> Made:
        """Return a view, or `fallback`: what is safe to assume about an unreadable object. Others stay readable."""
        try:
            view = checked(make())
        except Exception as error:
            # Decision 0018: an unreadable object is left out by itself, and the worst is assumed of it.
            why = in_short(error)
            self._unreadable[moid] = Unreadable(kind=_WORDS[kind], name=self._name(kind, moid), why=why)
            return fallback(why)
        self._unreadable.pop(moid, None)
        return view

    def _name(self, kind: str, moid: str) -> str:
        return str(self._of(kind).get(moid, {}).get("name") or moid)

    def misses_details(self, moids: set[str]) -> bool:
        """True if details of any of these VMs are missing."""
        raw = self._of("VirtualMachine")
        return any(moid in raw and "runtime.powerState" not in raw[moid] for moid in moids)

    def reference(self, moid: str) -> Any:
        return self._references[moid]

    def outlines(self) -> list[Outline]:
        """Return the outlines of all VMs."""
        for moid, raw in self._of("VirtualMachine").items():
            if moid not in self._outlines and "name" in raw:
                read = partial(self._outline, moid, raw)
                self._outlines[moid] = self._view("VirtualMachine", moid, read, partial(self._no_outline, moid))
        return list(self._outlines.values())

    def _outline(self, moid: str, raw: dict[str, Any]) -> Outline:
        host = moid_of(raw.get("runtime.host"))
        return Outline(
            moid=moid,
            name=str(raw["name"]),
            host=host,
            folder=self._path(moid_of(raw.get("parent"))),
            cluster=self._cluster(host),
            uuid=str(raw.get("config.uuid") or ""),
        )

    def _no_outline(self, moid: str, _why: str) -> Outline:
        return Outline(moid=moid, name=self._name("VirtualMachine", moid))

    def _path(self, moid: str) -> str:
        """Return a folder's path, such as `/dc-1/vm/gpu`; the root folder has no name of its own."""
        raw = self._of("Folder").get(moid) or self._of("Datacenter").get(moid)
        if raw is None or raw.get("parent") is None:
            return ""
        return f"{self._path(moid_of(raw['parent']))}/{raw.get('name', '')}"

    def _cluster(self, host: str) -> str:
        return str(self._of("ComputeResource").get(self._parent(host), {}).get("name", ""))

    def _parent(self, host: str) -> str:
        return moid_of(self._of("HostSystem").get(host, {}).get("parent"))

    def vms(self) -> dict[str, Vm]:
        """Return the VMs whose details are known."""
        self.outlines()
        for moid, raw in self._of("VirtualMachine").items():
            if moid not in self._vms and moid in self._outlines and "runtime.powerState" in raw:
                self._vms[moid] = self._vm(moid, raw)
        return dict(self._vms)

    def _vm(self, moid: str, raw: dict[str, Any]) -> Vm:
        known = raw, self._outlines[moid]
        if moid in self._unreadable:
            # The VM's outline could not be read, so its details are not trusted either.
            return views.unreadable_vm(*known, self._unreadable[moid].why)
        view = self._view("VirtualMachine", moid, partial(views.vm, *known), partial(views.unreadable_vm, *known))
        return replace(view, datastore=self._store_called(view.datastore, moid_of(raw.get("runtime.host"))))

    def hosts(self) -> dict[str, Host]:
        for moid, raw in self._of("HostSystem").items():
            if moid not in self._hosts and "name" in raw:
                read = partial(self._host, moid, raw)
                self._hosts[moid] = self._view("HostSystem", moid, read, partial(self._no_host, moid))
        return dict(self._hosts)

    def _host(self, moid: str, raw: dict[str, Any]) -> Host:
        return views.host(raw, self._cluster(moid), self._admission(self._parent(moid)))

    def _no_host(self, moid: str, _why: str) -> Host:
        return Host(name=self._name("HostSystem", moid))

    def _admission(self, cluster: str) -> Admission | None:
        """Return the cluster's admission control, read once for all its hosts."""
        settings = self._of("ComputeResource").get(cluster, {}).get(CLUSTER_SETTINGS)
        if cluster not in self._admissions:
            names = {moid: str(raw.get("name", "")) for moid, raw in self._of("HostSystem").items()}
            read = partial(admission, cluster, settings, names)
            self._admissions[cluster] = self._view("ComputeResource", cluster, read, lambda _: None)
        return self._admissions[cluster]

    def sharing_failover(self, hosts: set[str]) -> set[str]:
        """Return these hosts, and the hosts that share HA's reserve with them."""
        # vSphere HA: admission control counts what is reserved in the whole cluster.
        shared = {self._parent(host) for host in hosts}
        shared = {cluster for cluster in shared if self._admission(cluster) is not None}
        return hosts | {host for host in self._of("HostSystem") if self._parent(host) in shared}

    def tasks(self) -> dict[str, tuple[Task, ...]]:
        """Return the tasks of each VM."""
        if self._tasks_of is None:
            self._tasks_of = self._found_tasks()
        return self._tasks_of

    def _found_tasks(self) -> dict[str, tuple[Task, ...]]:
        for moid, raw in self._of("Task").items():
            if moid not in self._tasks and raw.get("info.entity") is not None and "info.key" in raw:
                read, fallback = partial(views.task, raw), partial(views.unreadable_task, raw, moid)
                self._tasks[moid] = (moid_of(raw["info.entity"]), self._view("Task", moid, read, fallback))
        found: dict[str, tuple[Task, ...]] = {}
        for vm, task in self._tasks.values():
            found[vm] = (*found.get(vm, ()), task)
        return found

    def datastores(self) -> dict[str, int]:
        """Return the free space of each datastore in MiB."""
        known = {moid: raw for moid, raw in self._of("Datastore").items() if "name" in raw}
        free = {
            moid: self._view("Datastore", moid, partial(_free_mib, raw), lambda _: None) for moid, raw in known.items()
        }
        names = self._store_names
        return {names[moid]: mib for moid, mib in free.items() if mib is not None}

    @property
    def _store_names(self) -> dict[str, str]:
        """Each datastore's name by its id; with the id, if another datacenter has a datastore of this name."""
        if self._store_names_now is None:
            names = {moid: str(raw["name"]) for moid, raw in self._of("Datastore").items() if "name" in raw}
            often = Counter(names.values())
            told_apart = {moid: f"{name} ({moid})" if often[name] > 1 else name for moid, name in names.items()}
            self._store_names_now = told_apart
        return self._store_names_now

    def _store_called(self, name: str, host: str) -> str:
        """Return the datastore of this name that the host sees; the mere name if that is not known."""
        raw = self._of("Datastore")
        seen = (moid_of(ref) for ref in self._of("HostSystem").get(host, {}).get("datastore") or ())
        found = (moid for moid in seen if raw.get(moid, {}).get("name") == name)
        return next((self._store_names[moid] for moid in found), name)

    def vms_on_cards(self) -> set[str]:
        """Return the ids of all VMs on cards."""
        return {vm for host in self.hosts().values() for card in host.cards for vm in card.holds}

    def _of(self, kind: str) -> dict[str, dict[str, Any]]:
        return self._raw.get(kind, {})


def _free_mib(raw: dict[str, Any]) -> int | None:
    return int(raw.get("summary.freeSpace") or 0) >> 20

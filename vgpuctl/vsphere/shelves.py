"""What vCenter has told so far, and the views of it. Not safe for several threads: the stream guards it."""

from __future__ import annotations

from typing import Any

from vgpuctl.model.admission import Admission
from vgpuctl.model.fleet import Task
from vgpuctl.model.hosts import Host
from vgpuctl.vsphere import news, views
from vgpuctl.vsphere.admission import admission
from vgpuctl.vsphere.asking import CLUSTER_SETTINGS
from vgpuctl.vsphere.views import Outline, Vm, moid_of

_KINDS = {"ClusterComputeResource": "ComputeResource"}
_OF_THE_OUTLINE = {"name", "parent", "runtime.host", "config.uuid"}


class Shelves:
    """Raw properties by kind and id. A view is made once and kept until its object changes: same object, same view.

    `moved`: since it was last set to False, something changed that tells which VMs matter. `unclear`: something was
    told that finds no place in what is known.
    """

    def __init__(self) -> None:
        self.moved, self.unclear = True, False
        self._raw: dict[str, dict[str, dict[str, Any]]] = {}
        self._references: dict[str, Any] = {}
        self._outlines: dict[str, Outline] = {}
        self._vms: dict[str, Vm] = {}
        self._hosts: dict[str, Host] = {}
        self._admissions: dict[str, Admission | None] = {}
        self._tasks: dict[str, tuple[str, Task]] = {}
        self._tasks_of: dict[str, tuple[Task, ...]] | None = None

    def take(self, update: Any) -> None:
        """One object's news."""
        kind = type(update.obj).__name__.rsplit(".", 1)[-1]
        objects, moid = self._raw.setdefault(_KINDS.get(kind, kind), {}), update.obj._moId
        if update.kind == "leave":
            objects.pop(moid, None)
            self._references.pop(moid, None)
        else:
            raw = objects.setdefault(moid, {})
            if update.kind == "enter":
                raw.update({change.name: change.val for change in update.changeSet or ()})
            elif not all(news.take(raw, change) for change in update.changeSet or ()):
                self.unclear = True
            if kind == "VirtualMachine":
                self._references[moid] = update.obj
        self._forget(kind, moid, {change.name for change in update.changeSet or ()})

    def _forget(self, kind: str, moid: str, changed: set[str]) -> None:
        """A change of a VM or task concerns its own view; one of folders and clusters may concern every path."""
        if kind in {"Task", "Datastore"}:
            self._tasks.pop(moid, None)
            self._tasks_of = None
            return
        self._vms.pop(moid, None)
        self._hosts.pop(moid, None)
        if kind == "VirtualMachine" and changed and not changed & _OF_THE_OUTLINE:
            return
        self.moved = True
        self._outlines.pop(moid, None)
        if kind == "HostSystem" and "name" in changed:
            self._hosts.clear()
            self._admissions.clear()
        if kind not in {"VirtualMachine", "HostSystem"}:
            self._outlines.clear()
            self._hosts.clear()
            self._admissions.clear()
            self._vms.clear()

    def lacking(self, moids: set[str]) -> bool:
        """Is there one of these VMs of which no details came?"""
        raw = self._of("VirtualMachine")
        return any(moid in raw and "runtime.powerState" not in raw[moid] for moid in moids)

    def reference(self, moid: str) -> Any:
        return self._references[moid]

    def outlines(self) -> list[Outline]:
        """All VMs from afar."""
        for moid, raw in self._of("VirtualMachine").items():
            if moid not in self._outlines and "name" in raw:
                self._outlines[moid] = self._outline(moid, raw)
        return list(self._outlines.values())

    def _outline(self, moid: str, raw: dict[str, Any]) -> Outline:
        host = moid_of(raw.get("runtime.host"))
        return Outline(
            moid=moid,
            name=raw["name"],
            host=host,
            folder=self._path(moid_of(raw.get("parent"))),
            cluster=self._cluster(host),
            uuid=str(raw.get("config.uuid") or ""),
        )

    def _path(self, moid: str) -> str:
        """`/dc-1/vm/gpu`; the root folder has no name of its own."""
        raw = self._of("Folder").get(moid) or self._of("Datacenter").get(moid)
        if raw is None or raw.get("parent") is None:
            return ""
        return f"{self._path(moid_of(raw['parent']))}/{raw.get('name', '')}"

    def _cluster(self, host: str) -> str:
        return str(self._of("ComputeResource").get(self._parent(host), {}).get("name", ""))

    def _parent(self, host: str) -> str:
        return moid_of(self._of("HostSystem").get(host, {}).get("parent"))

    def vms(self) -> dict[str, Vm]:
        """Those whose details are known."""
        self.outlines()
        for moid, raw in self._of("VirtualMachine").items():
            if moid not in self._vms and moid in self._outlines and "runtime.powerState" in raw:
                self._vms[moid] = views.vm(raw, self._outlines[moid])
        return dict(self._vms)

    def hosts(self) -> dict[str, Host]:
        for moid, raw in self._of("HostSystem").items():
            if moid not in self._hosts and "name" in raw:
                self._hosts[moid] = views.host(raw, self._cluster(moid), self._admission(self._parent(moid)))
        return dict(self._hosts)

    def _admission(self, cluster: str) -> Admission | None:
        """Made once for all its hosts."""
        settings = self._of("ComputeResource").get(cluster, {}).get(CLUSTER_SETTINGS)
        if cluster not in self._admissions:
            names = {moid: str(raw.get("name", "")) for moid, raw in self._of("HostSystem").items()}
            self._admissions[cluster] = admission(cluster, settings, names)
        return self._admissions[cluster]

    def beside(self, hosts: set[str]) -> set[str]:
        """These hosts, and those with which they share what HA keeps free."""
        shared = {self._parent(host) for host in hosts}
        shared = {cluster for cluster in shared if self._admission(cluster) is not None}
        return hosts | {host for host in self._of("HostSystem") if self._parent(host) in shared}

    def tasks(self) -> dict[str, tuple[Task, ...]]:
        """The tasks of each VM."""
        if self._tasks_of is None:
            self._tasks_of = self._found_tasks()
        return self._tasks_of

    def _found_tasks(self) -> dict[str, tuple[Task, ...]]:
        for moid, raw in self._of("Task").items():
            if moid not in self._tasks and raw.get("info.entity") is not None and "info.key" in raw:
                self._tasks[moid] = (raw["info.entity"]._moId, views.task(raw))
        found: dict[str, tuple[Task, ...]] = {}
        for vm, task in self._tasks.values():
            found[vm] = (*found.get(vm, ()), task)
        return found

    def datastores(self) -> dict[str, int]:
        """MiB that are free on each."""
        raw = self._of("Datastore").values()
        return {str(each["name"]): int(each.get("summary.freeSpace") or 0) >> 20 for each in raw if "name" in each}

    def seated(self) -> set[str]:
        """The ids of all VMs that sit on cards."""
        return {vm for host in self.hosts().values() for card in host.cards for vm in card.holds}

    def _of(self, kind: str) -> dict[str, dict[str, Any]]:
        return self._raw.get(kind, {})

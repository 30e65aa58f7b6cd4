"""vCenter's stream of changes: first all that matters, then only what changed, with no polling."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from vgpuctl.model.errors import VgpuctlError
from vgpuctl.model.fleet import Host, Task
from vgpuctl.vsphere import views
from vgpuctl.vsphere.faults import translated
from vgpuctl.vsphere.session import Session

WAIT_S = 60
AGAIN_AFTER_S = 1.0


class VcenterStream:
    """The workers' VMs, their hosts and tasks. One thread writes; readers take copies under the lock."""

    def __init__(self, session: Session, workers: Iterable[str], on_change: Callable[[], None]) -> None:
        self._session, self._workers, self._on_change = session, set(workers), on_change
        self._objects: dict[str, dict[str, dict[str, Any]]] = {"VirtualMachine": {}, "HostSystem": {}, "Task": {}}
        self._names: dict[str, str] = {}
        self._lock = threading.Lock()
        self._collector: Any = None
        self._version = ""
        self._closed = threading.Event()
        self.heard = False

    def fill(self) -> None:
        """The first picture, whole; raises where vCenter cannot be asked."""
        with translated(self._session.settings.server):
            chosen = self._choose()
            with self._lock:
                for objects in self._objects.values():
                    objects.clear()
            self._collector = self._session.content.propertyCollector.CreatePropertyCollector()
            self._collector.CreateFilter(_filter(chosen), False)
            self._version = ""
            self._next(wait_s=0)
        self.heard = True

    def follow(self) -> None:
        """Begin to listen for changes."""
        threading.Thread(target=self._listen, name="vcenter-stream", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def vms(self) -> dict[str, dict[str, Any]]:
        with self._lock:
            return {
                moid: dict(vm) for moid, vm in self._objects["VirtualMachine"].items() if "runtime.powerState" in vm
            }

    def hosts(self) -> dict[str, Host]:
        with self._lock:
            return {moid: views.host(host, self._names) for moid, host in self._objects["HostSystem"].items()}

    def tasks(self) -> list[tuple[str, Task]]:
        """Each task with the id of its VM."""
        with self._lock:
            known = [t for t in self._objects["Task"].values() if t.get("info.entity") is not None and "info.key" in t]
            return [(t["info.entity"]._moId, views.task(t)) for t in known]

    def _choose(self) -> list[Any]:
        """Names of all, devices of few: the VMs that our files name, those that sit on cards, and all hosts."""
        from pyVmomi import vim  # noqa: PLC0415

        content = self._session.content
        kinds = {vim.VirtualMachine: ["name"], vim.HostSystem: ["name", "config.graphicsInfo"]}
        view = content.viewManager.CreateContainerView(content.rootFolder, list(kinds), True)
        found = _retrieve(content.propertyCollector, view, kinds)
        view.DestroyView()
        self._names = {o.obj._moId: _value(o, "name") for o in found if isinstance(o.obj, vim.VirtualMachine)}
        hosts = [o for o in found if isinstance(o.obj, vim.HostSystem)]
        seated = {vm._moId for o in hosts for card in _value(o, "config.graphicsInfo") or () for vm in card.vm or ()}
        vms = [o.obj for o in found if self._names.get(o.obj._moId) in self._workers or o.obj._moId in seated]
        return [*vms, *(o.obj for o in hosts)]

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                if not self.heard:
                    self._session.open()
                    self.fill()
                else:
                    with translated(self._session.settings.server):
                        self._next(wait_s=WAIT_S)
            except VgpuctlError:
                self.heard = False
                self._on_change()
                self._closed.wait(AGAIN_AFTER_S)
            self._on_change()

    def _next(self, wait_s: int) -> None:
        from pyVmomi import vmodl  # noqa: PLC0415

        options = vmodl.query.PropertyCollector.WaitOptions(maxWaitSeconds=wait_s)
        truncated = True
        while truncated:
            update = self._collector.WaitForUpdatesEx(self._version, options)
            if update is None:
                return
            self._version, truncated = update.version, bool(update.truncated)
            with self._lock:
                for change in (change for part in update.filterSet for change in part.objectSet):
                    self._take(change)

    def _take(self, update: Any) -> None:
        objects = self._objects[type(update.obj).__name__.rsplit(".", 1)[-1]]
        if update.kind == "leave":
            objects.pop(update.obj._moId, None)
            return
        known = objects.setdefault(update.obj._moId, {"moid": update.obj._moId})
        known.update({change.name: change.val for change in update.changeSet or ()})


def _value(found: Any, path: str) -> Any:
    return next((prop.val for prop in found.propSet or () if prop.name == path), None)


def _retrieve(collector: Any, view: Any, kinds: dict[Any, list[str]]) -> list[Any]:
    """Every page of one RetrievePropertiesEx over a view."""
    from pyVmomi import vmodl  # noqa: PLC0415

    spec = vmodl.query.PropertyCollector
    through = spec.TraversalSpec(name="view", type=type(view), path="view", skip=False)
    filter_spec = spec.FilterSpec(
        objectSet=[spec.ObjectSpec(obj=view, skip=True, selectSet=[through])],
        propSet=[spec.PropertySpec(type=kind, pathSet=paths) for kind, paths in kinds.items()],
    )
    page = collector.RetrievePropertiesEx([filter_spec], spec.RetrieveOptions())
    found: list[Any] = []
    while page is not None:
        found += page.objects
        page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None
    return found


def _filter(chosen: list[Any]) -> Any:
    """Leaf paths only; a VM's recent tasks come along."""
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    spec = vmodl.query.PropertyCollector
    tasks = spec.TraversalSpec(name="tasks", type=vim.VirtualMachine, path="recentTask", skip=False)
    specs = [
        spec.ObjectSpec(obj=obj, selectSet=[tasks] if isinstance(obj, vim.VirtualMachine) else []) for obj in chosen
    ]
    properties = {
        vim.VirtualMachine: views.VM_PROPERTIES,
        vim.HostSystem: views.HOST_PROPERTIES,
        vim.Task: views.TASK_PROPERTIES,
    }
    return spec.FilterSpec(
        objectSet=specs, propSet=[spec.PropertySpec(type=kind, pathSet=paths) for kind, paths in properties.items()]
    )

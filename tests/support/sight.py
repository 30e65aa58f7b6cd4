"""Both simulated worlds as the product's streams know them: at once, or late by what each stream lags behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from vgpuctl.kube import views as kube_views
from vgpuctl.kube import workloads
from vgpuctl.kube.client import Object
from vgpuctl.kube.stream import disks_of
from vgpuctl.kube.views import Renewal, SeenNode
from vgpuctl.model.fleet import Task
from vgpuctl.model.hosts import Host
from vgpuctl.model.machine import Machine
from vgpuctl.model.pods import Budget, Disk, Pod
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.model.workloads import Workload
from vgpuctl.sim.vcenter.physics import records
from vgpuctl.sim.world import World
from vgpuctl.vsphere import views
from vgpuctl.vsphere.admission import admission
from vgpuctl.vsphere.property_filters import CLUSTER_SETTINGS, HOST_PATHS, TASK_PATHS, VM_PATHS

SHELVES: Mapping[str, Callable[[Any], Any]] = {
    "nodes": kube_views.node,
    "pods": lambda raw: kube_views.pod(raw, with_needs=True),
    "leases": kube_views.renewal,
    "poddisruptionbudgets": kube_views.budget,
    "daemonsets": kube_views.daemon_set,
    "jobs": kube_views.job,
    "machines": partial(kube_views.machine, at="/apis/cluster.x-k8s.io/v1beta2"),
    "volumeattachments": kube_views.attachment,
    "persistentvolumeclaims": kube_views.claim,
    "deployments": workloads.deployment,
    "statefulsets": workloads.stateful_set,
}
#: Jobs only tell what is said: nothing is decided by them, so nobody need be late with them.
#: As late as pods are.
LIKE_PODS = ("machines", "deployments", "statefulsets")
STREAMS = ("vcenter", *(name for name in SHELVES if name != "jobs"))
Seen = TypeVar("Seen")


class Sight:
    """Without delay. What did not change is not read anew."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._center = world.center
        self._read_before: dict[tuple[str, str], Any] = {}
        self._viewed: dict[str, dict[int, tuple[Object, Any]]] = {name: {} for name in SHELVES}
        world.estate.subscribe(self._changed)

    def stream(self, name: str) -> Any:
        """Everything that one stream tells; of vCenter VMs, hosts and tasks together."""
        if name == "vcenter":
            return self.vms(), self.hosts(), self.tasks()
        return self._all(name)

    def vms(self) -> dict[str, views.Vm]:
        return {vm.moid: self._once("vm", vm.moid, partial(self._vm, vm)) for vm in self._vms()}

    def hosts(self) -> dict[str, Host]:
        hosts = self._world.estate.hosts
        return {host.moid: self._once("host", host.moid, partial(self._host, host)) for host in hosts.values()}

    def _host(self, host: records.Host) -> Host:
        """Nobody changes what HA keeps free here."""
        if self._world.inventory.ha is None:
            return views.host(self._read(host.moid, HOST_PATHS), "")
        names = {each.moid: each.name for each in self._world.estate.hosts.values()}
        cluster = host.cluster
        config = self._read(cluster.moid, [CLUSTER_SETTINGS])[CLUSTER_SETTINGS]
        return views.host(self._read(host.moid, HOST_PATHS), cluster.name, admission(cluster.moid, config, names))

    def tasks(self) -> dict[str, tuple[Task, ...]]:
        return {vm.moid: self._once("tasks", vm.moid, partial(self._tasks, vm)) for vm in self._vms()}

    def datastores(self) -> dict[str, int]:
        """Nobody runs out of space here."""
        return {}

    def nodes(self) -> list[SeenNode]:
        return self._all("nodes")

    def renewals(self) -> list[Renewal]:
        return self._all("leases")

    def pods(self) -> list[Pod]:
        return self._all("pods")

    def budgets(self) -> list[Budget]:
        return self._all("poddisruptionbudgets")

    def workloads(self) -> dict[str, Workload]:
        return {each.key: each for kind in ("deployments", "statefulsets") for each in self._all(kind)}

    def disks(self) -> dict[str, list[Disk]] | None:
        return disks_of(self._all("volumeattachments"), self._all("persistentvolumeclaims"))

    def machines(self) -> list[Machine]:
        return self._all("machines")

    def unseen(self) -> tuple[str, ...]:
        return ()

    def unreadable(self) -> tuple[Unreadable, ...]:
        """Everything here can be read."""
        return ()

    def unreadable_by_id(self) -> dict[str, Unreadable]:
        return {}

    def daemon_sets(self) -> frozenset[str] | None:
        return frozenset(self._all("daemonsets"))

    def counting_jobs(self) -> frozenset[str]:
        return _counting(self._all("jobs"))

    def _all(self, name: str) -> list[Any]:
        known, view = self._viewed[name], SHELVES[name]
        raws = self._world.kubernetes.store.all(name)
        self._viewed[name] = {id(raw): known.get(id(raw)) or (raw, view(raw)) for raw in raws}
        return [seen for _, seen in self._viewed[name].values()]

    def _once(self, what: str, moid: str, read: Callable[[], Seen]) -> Seen:
        if (what, moid) not in self._read_before:
            self._read_before[what, moid] = read()
        found: Seen = self._read_before[what, moid]
        return found

    def _changed(self, record: records.Record) -> None:
        moid = record.entity_moid if isinstance(record, records.Task) else record.moid
        stale = [(what, moid) for what in ("vm", "host", "tasks")]
        if isinstance(record, records.Vm):
            stale.append(("host", record.host.moid))
        for key in stale:
            self._read_before.pop(key, None)

    def _vm(self, vm: records.Vm) -> views.Vm:
        outline = views.Outline(moid=vm.moid, name=vm.name, host=vm.host.moid)
        return views.vm(self._read(vm.moid, VM_PATHS), outline)

    def _tasks(self, vm: records.Vm) -> tuple[Task, ...]:
        return tuple(views.task(self._read(task.moid, TASK_PATHS)) for task in vm.recent_tasks)

    def _vms(self) -> list[records.Vm]:
        return list(self._world.estate.vms.values())

    def _read(self, moid: str, paths: list[str]) -> Object:
        thing = self._center._by_moid(moid, None)
        assert thing
        return {path: self._center.read(thing, path, None) for path in paths}


class LateSight:
    """Each stream shows what was true a while ago, and nothing that is older than what it has shown already."""

    def __init__(self, sight: Sight, lags_s: Mapping[str, float], now_s: float) -> None:
        self._sight, self._lags_s = sight, lags_s
        self._told = {name: [(now_s, sight.stream(name))] for name in STREAMS}
        self._now_s = now_s

    def look(self, now_s: float) -> None:
        """What is true now will be shown in a while."""
        self._now_s = now_s
        for name, told in self._told.items():
            if (true := self._sight.stream(name)) != told[-1][1]:
                told.append((now_s, true))
            while len(told) > 1 and self._due_s(name, 1) <= now_s:
                del told[0]

    def next_due_s(self) -> float | None:
        """When one of the streams will show something new."""
        return min((self._due_s(name, 1) for name, told in self._told.items() if len(told) > 1), default=None)

    def _due_s(self, name: str, number: int) -> float:
        return self._told[name][number][0] + self._lags_s.get(name, 0.0)

    def _shown(self, name: str) -> Any:
        return self._told[name][0][1]

    def vms(self) -> dict[str, views.Vm]:
        found: dict[str, views.Vm] = self._shown("vcenter")[0]
        return found

    def hosts(self) -> dict[str, Host]:
        found: dict[str, Host] = self._shown("vcenter")[1]
        return found

    def tasks(self) -> dict[str, tuple[Task, ...]]:
        found: dict[str, tuple[Task, ...]] = self._shown("vcenter")[2]
        return found

    def datastores(self) -> dict[str, int]:
        """Nobody runs out of space here."""
        return {}

    def nodes(self) -> list[SeenNode]:
        return list(self._shown("nodes"))

    def renewals(self) -> list[Renewal]:
        return list(self._shown("leases"))

    def pods(self) -> list[Pod]:
        return list(self._shown("pods"))

    def budgets(self) -> list[Budget]:
        return list(self._shown("poddisruptionbudgets"))

    def workloads(self) -> dict[str, Workload]:
        return {each.key: each for kind in ("deployments", "statefulsets") for each in self._shown(kind)}

    def disks(self) -> dict[str, list[Disk]] | None:
        return disks_of(self._shown("volumeattachments"), self._shown("persistentvolumeclaims"))

    def machines(self) -> list[Machine]:
        return list(self._shown("machines"))

    def unseen(self) -> tuple[str, ...]:
        return ()

    def unreadable(self) -> tuple[Unreadable, ...]:
        """Everything here can be read."""
        return ()

    def unreadable_by_id(self) -> dict[str, Unreadable]:
        return {}

    def daemon_sets(self) -> frozenset[str] | None:
        return frozenset(self._shown("daemonsets"))

    def counting_jobs(self) -> frozenset[str]:
        return self._sight.counting_jobs()


def _counting(jobs: list[tuple[str, bool]]) -> frozenset[str]:
    """Those that count evictions as failures."""
    return frozenset(name for name, ignores in jobs if not ignores)

"""The fleet: one immutable picture of hosts, cards, workers, their pods and their running vCenter tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from vgpuctl.basics.change import changed
from vgpuctl.model.admission import Admission
from vgpuctl.model.departure import Departure, Key
from vgpuctl.model.hold import Hold
from vgpuctl.model.hosts import Host
from vgpuctl.model.ledger import Ledger
from vgpuctl.model.machine import Machine
from vgpuctl.model.orders import Orders
from vgpuctl.model.outcome import Outcome
from vgpuctl.model.places import Amounts, Taint
from vgpuctl.model.pods import Budget, Disk, Pod
from vgpuctl.model.record import Record
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.model.workloads import Workload


class Power(StrEnum):
    """Power states, in vSphere's own words."""

    # vSphere: suspended is not off: devices may be changed only in `poweredOff`.
    ON = "poweredOn"
    OFF = "poweredOff"
    SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A vCenter task on one VM, running or lately ended.

    `passing`: the request may be tried again. `own`: it failed because of the VM itself, as far as that can be known.
    """

    key: str
    kind: str
    running: bool
    fault: str | None = None
    message: str = ""
    passing: bool = False
    own: bool = False


@dataclass(frozen=True, kw_only=True)
class Node:
    """A Kubernetes node, inside a worker or elsewhere.

    `taints`: the keys of all taints. `keeps_off`: the taints that keep new pods away. `gives`: what it has for pods, in
    thousandths.
    `alive_s`: if it slept, for how long its kubelet has been seen to renew its Lease since.
    `autoscaled`: it names a program that may add nodes like it. `marks`: its MARKS for other programs, by
    whichever program.
    `machine`: the namespace and name of its Machine in Cluster API, if it names one. `hold`: a worker's is in force.
    """

    name: str
    version: str = ""
    ready: bool = False
    unschedulable: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    record: Record | None = None
    hold: Hold | None = None
    marks: frozenset[str] = frozenset()
    lease_renewed: str | None = None
    heartbeat: str | None = None
    alive_s: float = 0.0
    taints: tuple[str, ...] = ()
    keeps_off: tuple[Taint, ...] = ()
    gpus: int = 0
    gives: Amounts = ()
    autoscaled: bool = False
    machine: str = ""
    cordoned_by: str = ""
    cordoned_since: str = ""
    pods: tuple[Pod, ...] = ()
    disks: tuple[Disk, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mmio:
    """A VM's settings for the address space of large BARs."""

    # NVIDIA AI Enterprise: EFI, `pciPassthru.use64bitMMIO` and `pciPassthru.64bitMMIOSizeGB`.
    efi: bool = False
    use_64bit: bool = False
    size_gib: int = 0


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One vSphere VM and the Kubernetes node inside it.

    `profile`: what our files want it to carry. `chosen_at`: the places in the files that say so.
    `doubts`: why we cannot be sure which VM or node it is. `shutting_down`: its guest was asked to shut down and still
    runs.
    `fixed_devices`: devices with which it cannot be suspended. `tracing`: settings of its vGPUs that forbid it, too, if
    they were read. `mmio`: None if it was not read.
    `machine`: its Machine in Cluster API, if there is one that we may see and mark.
    """

    name: str
    vm: str
    # vSphere: under DRS a power-on may place the VM on another host, so its host is read anew at each look.
    host: str
    power: Power
    shutting_down: bool = False
    profile: str = ""
    chosen_at: tuple[str, ...] = ()
    vgpus: tuple[str, ...] = ()
    memory_mib: int = 0
    memory_locked: bool = True
    datastore: str = ""
    mmio: Mmio | None = None
    fixed_devices: tuple[str, ...] = ()
    tracing: tuple[str, ...] = ()
    # vSphere: `config.managedBy` names a program that owns the VM, such as VM Operator or a vApp.
    managed_by: str = ""
    # vSphere: while `runtime.question` waits for an answer, a power-on hangs for ever.
    question: str = ""
    tasks: tuple[Task, ...] = ()
    node: Node | None = None
    machine: Machine | None = None
    doubts: tuple[str, ...] = ()

    @property
    def on(self) -> bool:
        return self.power is Power.ON

    def with_node(self, **changes: Any) -> Worker:
        """Return the worker with a changed node; itself if it has no node."""
        return self if self.node is None else changed(self, node=changed(self.node, **changes))

    @property
    def hold(self) -> Hold | None:
        """Return the hold in force: the picture leaves out a hold that has ended."""
        return self.node.hold if self.node else None

    @property
    def busy_with(self) -> Task | None:
        return next((task for task in self.tasks if task.running), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """A VM that no file names. It counts if it takes something that a worker needs."""

    name: str
    vm: str = ""
    host: str = ""
    vgpus: tuple[str, ...] = ()
    on: bool = True
    reserved_mib: int = 0


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Everything that decisions are made on.

    `strangers`: VMs that no file names, on our cards or hosts. `missing`: workers that vCenter does not know.
    `strays`: nodes that bear labels of ours and are no worker's, each as a worker that has no VM.
    `datastores`: MiB free on each, if they were asked for.
    `departures`: the hosts that are on their way between shifts of a timetable, as far as that was recorded.
    `orders`: what people have ordered. `outcomes`: what became of the last start on each host.
    `elsewhere`: the nodes that are no worker's, with their pods.
    `workloads`: by their keys, if a timetable scales any.
    `unseen`: kinds of Kubernetes objects that we are not allowed to see, and do without.
    `unreadable`: objects of the servers that could not be read, and are left out.
    `stale`: the streams that are not heard at this moment. `silence`: why, by the streams' names.
    """

    hosts: Mapping[str, Host] = field(default_factory=dict)
    workers: Mapping[str, Worker] = field(default_factory=dict)
    budgets: tuple[Budget, ...] = ()
    waiting: tuple[Pod, ...] = ()
    strangers: Mapping[str, Stranger] = field(default_factory=dict)
    strays: Mapping[str, Worker] = field(default_factory=dict)
    elsewhere: tuple[Node, ...] = ()
    missing: tuple[str, ...] = ()
    datastores: Mapping[str, int] = field(default_factory=dict)
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    departures: Mapping[Key, Departure] = field(default_factory=dict)
    orders: Orders = field(default_factory=Orders)
    outcomes: Mapping[Key, Outcome] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    # An old picture that counts as true is the worst that a stream can give (decision 0018).
    stale: tuple[str, ...] = ()
    silence: Mapping[str, str] = field(default_factory=dict)

    def unheard(self) -> str:
        """Return `vCenter cannot be heard: why`; "" while all streams are heard."""
        if not self.stale:
            return ""
        why = "; ".join(self.silence[name] for name in self.stale if self.silence.get(name))
        return f"{' and '.join(self.stale)} cannot be heard{f': {why}' if why else ''}"

    def worker(self, name: str) -> Worker:
        return self.workers[name] if name in self.workers else self.strays[name]

    @cached_property
    def _by_host(self) -> Mapping[str, tuple[Worker, ...]]:
        found: dict[str, list[Worker]] = {}
        for worker in self.workers.values():
            found.setdefault(worker.host, []).append(worker)
        return {host: tuple(workers) for host, workers in found.items()}

    def find(self, name: str) -> Worker | None:
        """Return the worker; None for a workload, or for a worker that vCenter or our files no longer have."""
        return self.workers.get(name) or self.strays.get(name)

    def knows(self, name: str) -> bool:
        return name in self.workers or name in self.strays or name in self.workloads

    def host_of(self, name: str) -> str:
        """Return the worker's host; "" for a worker that is gone, and for a workload, which is on no host."""
        worker = self.find(name)
        return worker.host if worker else ""

    @cached_property
    def _by_node(self) -> Mapping[str, Worker]:
        return {worker.node.name: worker for worker in self.workers.values() if worker.node}

    def with_this_node(self, node: str) -> Worker | None:
        return self._by_node.get(node)

    def on_host(self, host: str) -> tuple[Worker, ...]:
        return self._by_host.get(host, ())

    @cached_property
    def _strangers_by_host(self) -> Mapping[str, tuple[Stranger, ...]]:
        found: dict[str, list[Stranger]] = {}
        for stranger in self.strangers.values():
            found.setdefault(stranger.host, []).append(stranger)
        return {host: tuple(strangers) for host, strangers in found.items()}

    @cached_property
    def _by_admission(self) -> Mapping[str, tuple[Host, ...]]:
        found: dict[str, list[Host]] = {}
        for host in self.hosts.values():
            if host.admission is not None:
                found.setdefault(host.admission.cluster, []).append(host)
        return {cluster: tuple(hosts) for cluster, hosts in found.items()}

    def under(self, admission: Admission) -> tuple[Host, ...]:
        """Return the hosts of the cluster under this admission control."""
        return self._by_admission.get(admission.cluster, ())

    def strangers_on(self, host: str) -> tuple[Stranger, ...]:
        return self._strangers_by_host.get(host, ())

    def vgpus_of(self, vm: str) -> tuple[str, ...]:
        """Return what a VM on a card carries, whether it is ours or a stranger."""
        if vm in self.workers:
            return self.workers[vm].vgpus
        return self.strangers[vm].vgpus if vm in self.strangers else ()

    def with_ledger(self, ledger: Ledger) -> Fleet:
        return changed(self, departures=ledger.departures, orders=ledger.orders, outcomes=ledger.outcomes)

    def with_this(self, worker: Worker) -> Fleet:
        """Return the fleet with this worker instead of the one it knew."""
        if worker.name in self.strays:
            return changed(self, strays={**self.strays, worker.name: worker})
        return changed(self, workers={**self.workers, worker.name: worker})

    def with_workload(self, key: str, **changes: Any) -> Fleet:
        return changed(self, workloads={**self.workloads, key: replace(self.workloads[key], **changes)})

    @cached_property
    def _budgets_in(self) -> Mapping[str, tuple[Budget, ...]]:
        found: dict[str, list[Budget]] = {}
        for budget in self.budgets:
            found.setdefault(budget.namespace, []).append(budget)
        return {namespace: tuple(budgets) for namespace, budgets in found.items()}

    def budgets_over(self, pod: Pod) -> Iterable[Budget]:
        return (b for b in self._budgets_in.get(pod.namespace, ()) if b.covers.matches(pod.labels))

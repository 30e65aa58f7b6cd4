"""What both servers show at one moment, and what of it belongs to one VM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol

from vgpuctl.kube.views import Renewal, SeenNode
from vgpuctl.model.fleet import Task
from vgpuctl.model.hold import Hold
from vgpuctl.model.hosts import Host
from vgpuctl.model.identity import Inside
from vgpuctl.model.machine import Machine
from vgpuctl.model.pods import Budget, Disk, Pod
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.model.workloads import Workload
from vgpuctl.observe.choosing import Chosen
from vgpuctl.observe.joined_facts import Machines, overdue_s
from vgpuctl.observe.unreadable_parts import UnreadableParts
from vgpuctl.vsphere.views import Vm


class VcenterSeen(Protocol):
    """What is known of vCenter at this moment, by the ids of VMs and hosts."""

    def vms(self) -> Mapping[str, Vm]: ...
    def hosts(self) -> Mapping[str, Host]: ...
    def tasks(self) -> Mapping[str, tuple[Task, ...]]: ...
    def datastores(self) -> Mapping[str, int]: ...
    def unreadable_by_id(self) -> Mapping[str, Unreadable]: ...


class KubernetesSeen(Protocol):
    """What is known of Kubernetes at this moment."""

    def nodes(self) -> list[SeenNode]: ...
    def renewals(self) -> list[Renewal]: ...
    def pods(self) -> list[Pod]: ...
    def budgets(self) -> list[Budget]: ...
    def daemon_sets(self) -> frozenset[str] | None: ...
    def counting_jobs(self) -> frozenset[str]: ...
    def workloads(self) -> Mapping[str, Workload]: ...
    def disks(self) -> Mapping[str, list[Disk]] | None: ...
    def machines(self) -> list[Machine]: ...
    def unseen(self) -> tuple[str, ...]: ...
    def unreadable(self) -> tuple[Unreadable, ...]: ...


class WorkerParts(NamedTuple):
    """The parts of one worker, as far as they are known.

    `late_s`: for each ending pod of its node, how long it has been overdue. `unreadable`: parts that could not be read.
    `namesakes`: the ids of all workers of its name, if there are several. `hold`: the one in force.
    """

    vm: Vm
    host: str
    seen: SeenNode | None
    chosen: Chosen
    machine: Machine | None
    lease_renewed: str | None
    pods: tuple[Pod, ...]
    disks: list[Disk] | None
    tasks: tuple[Task, ...] | None
    doubt: str
    unreadable: tuple[str, ...]
    namesakes: tuple[str, ...]
    daemon_sets: frozenset[str] | None
    counting_jobs: frozenset[str]
    late_s: tuple[int, ...]
    hold: Hold | None


class Snapshot(NamedTuple):
    """Both servers' objects: VMs, hosts and tasks by their ids, what Kubernetes has by the names of nodes."""

    vms: Mapping[str, Vm]
    hosts: Mapping[str, Host]
    tasks: Mapping[str, tuple[Task, ...]]
    nodes: Mapping[str, SeenNode]
    pods: list[Pod]
    pods_on: Mapping[str, tuple[Pod, ...]]
    lease_renewed: Mapping[str, str | None]
    disks: Mapping[str, list[Disk]]
    daemon_sets: frozenset[str] | None
    counting_jobs: frozenset[str]
    machines: Machines
    datastores: Mapping[str, int]
    unreadable: UnreadableParts

    @classmethod
    def of(cls, vcenter: VcenterSeen, kubernetes: KubernetesSeen) -> Snapshot:
        # Before what could not be read is asked for: each of these finds out by being read.
        vms, hosts, tasks, datastores = vcenter.vms(), vcenter.hosts(), vcenter.tasks(), vcenter.datastores()
        before = kubernetes.unreadable()
        nodes, pods = kubernetes.nodes(), kubernetes.pods()
        return cls(
            vms=vms,
            hosts=hosts,
            tasks=tasks,
            nodes={seen.identity.name: seen for seen in nodes},
            pods=pods,
            pods_on=_by_node(pods),
            # Kubernetes: a node's Lease has the node's name.
            lease_renewed={each.node: each.time for each in kubernetes.renewals()},
            disks=kubernetes.disks() or {},
            daemon_sets=kubernetes.daemon_sets(),
            counting_jobs=kubernetes.counting_jobs(),
            machines=Machines(kubernetes.machines()),
            datastores=datastores,
            # Read before and after: an object that was left out of a list in between is named by one of the two.
            unreadable=UnreadableParts(vcenter.unreadable_by_id(), (*before, *kubernetes.unreadable()), vms, hosts),
        )

    def parts(
        self, moid: str, inside: Inside, chosen: Chosen, now: datetime, *, namesakes: tuple[str, ...]
    ) -> WorkerParts:
        """Return what belongs to a VM. `inside`: the node in it. `namesakes`: see WorkerParts."""
        vm, node = self.vms[moid], inside.node or ""
        seen, pods, host = self.nodes.get(node), self.pods_on.get(node, ()), self.hosts.get(vm.outline.host)
        return WorkerParts(
            vm=vm,
            host=host.name if host else "",
            seen=seen,
            chosen=chosen,
            machine=self.machines.of(vm, seen),
            lease_renewed=self.lease_renewed.get(node),
            pods=pods,
            disks=self.disks.get(node),
            tasks=self.tasks.get(moid),
            doubt=inside.doubt,
            unreadable=self.unreadable.doubts_about(vm, node),
            namesakes=namesakes,
            daemon_sets=self.daemon_sets,
            counting_jobs=self.counting_jobs,
            # Decision 0015: workers are made anew only when their parts differ, so passing time must be one of them.
            late_s=tuple(overdue_s(pod, now) for pod in pods if pod.ends_by),
            # A hold ends by the clock alone: no event of the node reports it.
            hold=_in_force(seen, now),
        )


def _in_force(seen: SeenNode | None, now: datetime) -> Hold | None:
    hold = seen.node.hold if seen else None
    return hold if hold is not None and hold.active(now) else None


def _by_node(pods: Iterable[Pod]) -> dict[str, tuple[Pod, ...]]:
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node is not None:
            found.setdefault(pod.node, []).append(pod)
    return {node: tuple(pods) for node, pods in found.items()}

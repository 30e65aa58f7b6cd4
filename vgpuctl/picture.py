"""Two streams joined into one picture: VMs, hosts and tasks from vCenter, nodes and pods from Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from vgpuctl.kube import views as kube_views
from vgpuctl.kube.client import Object
from vgpuctl.model.fleet import Fleet, Host, Node, Pod, Power, Stranger, Task, Worker
from vgpuctl.model.identity import NodeIdentity, match
from vgpuctl.vsphere import views as vsphere_views


class VcenterSeen(Protocol):
    """What is known of vCenter at this moment."""

    def vms(self) -> dict[str, Object]: ...
    def hosts(self) -> dict[str, Host]: ...
    def tasks(self) -> list[tuple[str, Task]]: ...


class KubernetesSeen(Protocol):
    """What is known of Kubernetes at this moment."""

    def objects(self, name: str) -> list[Object]: ...


def picture(vcenter: VcenterSeen, kubernetes: KubernetesSeen, names: tuple[str, ...]) -> Fleet:
    """`names`: the workers that our files name."""
    hosts = vcenter.hosts()
    raw = {vm["name"]: vm for vm in vcenter.vms().values()}
    ours = [vm for name, vm in raw.items() if name in set(names)]
    pods = [kube_views.pod(item) for item in kubernetes.objects("pods")]
    nodes = _Nodes(kubernetes, ours, pods)
    tasks: dict[str, list[Task]] = {}
    for moid, task in vcenter.tasks():
        tasks.setdefault(moid, []).append(task)
    workers = {name: _worker(raw[name], hosts, tasks, nodes) for name in names if name in raw}
    return Fleet(
        hosts={host.name: host for host in hosts.values()},
        workers=workers,
        budgets=tuple(kube_views.budget(item) for item in kubernetes.objects("budgets")),
        waiting=tuple(pod for pod in pods if pod.node is None and pod.phase == "Pending"),
        strangers={
            name: Stranger(name=name, vgpus=vsphere_views.vgpus(vm), on=vsphere_views.power(vm) is Power.ON)
            for name, vm in raw.items()
            if name not in workers
        },
        missing=tuple(name for name in names if name not in raw),
    )


class _Nodes:
    """The nodes inside our VMs, each with its lease and pods."""

    def __init__(self, kubernetes: KubernetesSeen, vms: list[Object], pods: list[Pod]) -> None:
        self._raw = {item["metadata"]["name"]: item for item in kubernetes.objects("nodes")}
        self._leases = {item["metadata"]["name"]: item for item in kubernetes.objects("leases")}
        identities = (NodeIdentity(name, *kube_views.identities(item)) for name, item in self._raw.items())
        self._of_vm = match({vm["name"]: str(vm.get("config.uuid") or "") for vm in vms}, identities)
        self._pods: dict[str | None, list[Pod]] = {}
        for pod in pods:
            self._pods.setdefault(pod.node, []).append(pod)

    def of(self, vm: str) -> Node | None:
        name = self._of_vm.get(vm)
        if name is None:
            return None
        return kube_views.node(self._raw[name], self._leases.get(name), self._pods.get(name, ()))


def _worker(vm: Object, hosts: dict[str, Host], tasks: Mapping[str, list[Task]], nodes: _Nodes) -> Worker:
    host = vm.get("runtime.host")
    return Worker(
        name=vm["name"],
        vm=vm["moid"],
        host=hosts[host._moId].name if host is not None and host._moId in hosts else "",
        power=vsphere_views.power(vm),
        vgpus=vsphere_views.vgpus(vm),
        memory_locked=bool(vm.get("config.memoryReservationLockedToMax")),
        tasks=tuple(tasks.get(vm["moid"], ())),
        node=nodes.of(vm["name"]),
    )

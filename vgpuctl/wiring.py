"""Where vCenter and Kubernetes meet: two streams joined into one fleet, requests sent to whom they concern."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from vgpuctl.engine.ports import Answer, World
from vgpuctl.kube import views as kube_views
from vgpuctl.kube.actions import confirm, evict, patch_node
from vgpuctl.kube.client import Client, KubernetesSettings, Object
from vgpuctl.kube.lease import ActingLease
from vgpuctl.kube.stream import KubernetesStream
from vgpuctl.model.fleet import Fleet, Host, Node, Pod, Task, Worker
from vgpuctl.model.identity import NodeIdentity, match
from vgpuctl.model.requests import Evict, PatchNode, Request, ShutDownGuest, SuspendVm
from vgpuctl.vsphere import actions as vsphere_actions
from vgpuctl.vsphere import views as vsphere_views
from vgpuctl.vsphere.session import Session, VcenterSettings
from vgpuctl.vsphere.stream import VcenterStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    vcenter: VcenterSettings
    kubernetes: KubernetesSettings
    lease_s: float = 15.0
    connect_s: float = 10.0


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def utc(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Connection:
    """Both servers, looked at through their streams and asked through their actions."""

    def __init__(self, settings: Settings, workers: Iterable[str]) -> None:
        self._settings = settings
        self._workers = tuple(workers)
        self._listeners: list[Callable[[], None]] = []
        self._last: Fleet | None = None
        self._session = Session(settings.vcenter)
        self._client = Client(settings.kubernetes)
        self._vcenter = VcenterStream(self._session, self._workers, self._changed)
        self._kubernetes = KubernetesStream(self._client, self._changed)

    def open(self) -> Connection:
        """The first picture of both servers, asked for side by side."""
        with ThreadPoolExecutor(2) as pool:
            kubernetes = pool.submit(self._kubernetes.fill)
            self._session.open()
            self._vcenter.fill()
            kubernetes.result()
        return self

    def follow(self) -> None:
        """From now on the picture is kept true."""
        self._vcenter.follow()
        self._kubernetes.follow()

    def close(self) -> None:
        self._vcenter.close()
        self._kubernetes.close()
        self._session.close()

    def world(self) -> World:
        lease = ActingLease(self._client, self._settings.kubernetes.namespace, self._settings.lease_s)
        return World(observer=self, sender=self, lease=lease, clock=SystemClock())

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(call)
        return lambda: self._listeners.remove(call)

    def _changed(self) -> None:
        for call in tuple(self._listeners):
            call()

    def send(self, request: Request) -> Answer:
        match request:
            case PatchNode():
                return patch_node(self._client, request)
            case Evict():
                return evict(self._client, request)
            case SuspendVm(first=first) | ShutDownGuest(first=first) if first is not None:
                confirm(self._client, first)
        return vsphere_actions.send(self._session, request)

    def fleet(self) -> Fleet:
        """The picture as it is; while a stream is not heard, the last whole one, said to be stale."""
        picture = self._last if self._stale() and self._last is not None else self._picture()
        stale = self._stale()
        if not stale:
            self._last = picture
        return replace(self._last or picture, stale=stale)

    def _picture(self) -> Fleet:
        vms = self._vcenter.vms()
        hosts = self._vcenter.hosts()
        raw = {vm["name"]: vm for vm in vms.values()}
        ours = [vm for name, vm in raw.items() if name in set(self._workers)]
        pods = [kube_views.pod(item) for item in self._kubernetes.objects("pods")]
        nodes = _Nodes(self._kubernetes, ours, pods)
        tasks: dict[str, list[Task]] = {}
        for moid, task in self._vcenter.tasks():
            tasks.setdefault(moid, []).append(task)
        workers = {name: _worker(raw[name], hosts, tasks, nodes) for name in self._workers if name in raw}
        return Fleet(
            hosts={host.name: host for host in hosts.values()},
            workers=workers,
            budgets=tuple(kube_views.budget(item) for item in self._kubernetes.objects("budgets")),
            waiting=tuple(pod for pod in pods if pod.node is None and pod.phase == "Pending"),
            strangers={n: vsphere_views.vgpus(vm) for n, vm in raw.items() if n not in workers},
            missing=tuple(name for name in self._workers if name not in raw),
        )

    def _stale(self) -> tuple[str, ...]:
        heard = {"vCenter": self._vcenter.heard, "Kubernetes": self._kubernetes.heard}
        return tuple(name for name, well in heard.items() if not well)


class _Nodes:
    """The nodes inside our VMs, each with its lease and pods."""

    def __init__(self, stream: KubernetesStream, vms: list[Object], pods: list[Pod]) -> None:
        self._raw = {item["metadata"]["name"]: item for item in stream.objects("nodes")}
        self._leases = {item["metadata"]["name"]: item for item in stream.objects("leases")}
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

"""Lists and watches: one copy of nodes, pods, leases and budgets, kept true by the API server's own events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from vgpuctl.kube import views, workloads
from vgpuctl.kube.client import Client, NotAllowedError, NotFoundError
from vgpuctl.kube.machines import Machines
from vgpuctl.kube.reflector import Kind, Reflector
from vgpuctl.kube.views import Renewal, SeenNode
from vgpuctl.model.errors import PassingError
from vgpuctl.model.machine import Machine
from vgpuctl.model.pods import Budget, Disk, Pod
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.model.workloads import Workload

KINDS = {
    "nodes": Kind("/api/v1/nodes", views.node),
    "pods": Kind("/api/v1/pods", views.pod),
    "leases": Kind("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", views.renewal),
    "budgets": Kind("/apis/policy/v1/poddisruptionbudgets", views.budget),
}
#: What only a drain needs to know; what stands here alone it does without where it is denied.
DRAIN_KINDS = {
    "pods": Kind("/api/v1/pods", partial(views.pod, with_needs=True)),
    "daemonsets": Kind("/apis/apps/v1/daemonsets", views.daemon_set),
    "jobs": Kind("/apis/batch/v1/jobs", views.job),
    "persistentvolumeclaims": Kind("/api/v1/persistentvolumeclaims", views.claim),
    "volumeattachments": Kind("/apis/storage.k8s.io/v1/volumeattachments", views.attachment),
}


#: What only timetables that scale workloads need to know.
SCALE_KINDS = {
    "deployments": Kind("/apis/apps/v1/deployments", workloads.deployment),
    "statefulsets": Kind("/apis/apps/v1/statefulsets", workloads.stateful_set),
    "horizontalpodautoscalers": Kind("/apis/autoscaling/v2/horizontalpodautoscalers", workloads.autoscaler),
}

#: What a switch decides on just after it has taken the Lease.
REFRESHED = ("nodes", "pods", "deployments", "statefulsets")


class KubernetesStream:
    """The four shelves together, and those for drains and for scaling as far as there is something that we may see."""

    def __init__(
        self, client: Client, on_change: Callable[[], None], *, drains: bool = False, scales: bool = False
    ) -> None:
        kinds = KINDS | (DRAIN_KINDS if drains else {}) | (SCALE_KINDS if scales else {})
        self._machines = Machines(client, on_change)
        if drains:
            kinds = {**kinds, "nodes": self._machines.named_by(kinds["nodes"])}
        self.shelves: dict[str, Reflector] = {name: Reflector(client, kind, on_change) for name, kind in kinds.items()}
        self.shelves["machines"] = self._machines
        self._denied: tuple[str, ...] = ()

    def fill(self) -> None:
        """In this order: a pod's DaemonSet, listed after the pod, is missing only if it is gone. What was told before
        another failed is not asked again: its watch goes on from there."""
        for name, shelf in tuple(self.shelves.items()):
            try:
                if not shelf.heard:
                    shelf.fill()
            except (NotAllowedError, NotFoundError):
                if name in KINDS:
                    raise
                self._denied += (name,)
                del self.shelves[name]

    def refresh(self) -> None:
        """Nodes, pods and workloads once more, as they are now. PassingError if Kubernetes is not heard."""
        for name in REFRESHED:
            if name in self.shelves:
                self.shelves[name].refresh()
        if not self.heard:
            raise PassingError(f"Kubernetes cannot be heard: {self.silence}.")

    def follow(self) -> None:
        for shelf in self.shelves.values():
            shelf.follow()

    def close(self) -> None:
        for shelf in self.shelves.values():
            shelf.close()

    @property
    def heard(self) -> bool:
        return all(shelf.heard for shelf in self.shelves.values())

    @property
    def silence(self) -> str:
        """Why it is not heard: the first reason, and of what, unless the server itself is silent."""
        reasons = ((name, shelf.silence) for name, shelf in self.shelves.items() if not shelf.heard)
        found = (why if "Kubernetes at" in why else f"{name}: {why}" for name, why in reasons)
        return next(found, "")

    def unreadable(self) -> tuple[Unreadable, ...]:
        return tuple(each for shelf in self.shelves.values() for each in shelf.unreadable())

    def nodes(self) -> list[SeenNode]:
        return self.shelves["nodes"].objects()

    def renewals(self) -> list[Renewal]:
        return self.shelves["leases"].objects()

    def pods(self) -> list[Pod]:
        return self.shelves["pods"].objects()

    def budgets(self) -> list[Budget]:
        return self.shelves["budgets"].objects()

    def unseen(self) -> tuple[str, ...]:
        return self._denied

    def machines(self) -> list[Machine]:
        return self._machines.objects()

    def without_machines(self) -> None:
        """They cannot be marked after all."""
        self._machines.bar()

    def daemon_sets(self) -> frozenset[str] | None:
        """None where they are not known."""
        shelf = self.shelves.get("daemonsets")
        return frozenset(shelf.objects()) if shelf else None

    def counting_jobs(self) -> frozenset[str]:
        """Those that count an eviction as a failure."""
        shelf = self.shelves.get("jobs")
        return frozenset(name for name, ignores in shelf.objects() if not ignores) if shelf else frozenset()

    def workloads(self) -> dict[str, Workload]:
        """By their keys, with what is known of who else decides their size."""
        found = [each for kind in ("deployments", "statefulsets") for each in self._objects_of(kind)]
        return {each.key: each for each in workloads.decided(found, self._objects_of("horizontalpodautoscalers"))}

    def _objects_of(self, kind: str) -> list[Any]:
        return self.shelves[kind].objects() if kind in self.shelves else []

    def disks(self) -> dict[str, list[Disk]] | None:
        """What hangs on each node; None where that, or to whom it belongs, is not known."""
        if "volumeattachments" not in self.shelves or "persistentvolumeclaims" not in self.shelves:
            return None
        return disks_of(self.shelves["volumeattachments"].objects(), self.shelves["persistentvolumeclaims"].objects())


def disks_of(attachments: list[tuple[str, str]], claims: list[tuple[str, str]]) -> dict[str, list[Disk]]:
    """By node, in an order that stays."""
    bound, found = dict(claims), dict[str, list[Disk]]()
    for node, volume in sorted(attachments):
        found.setdefault(node, []).append(Disk(volume, bound.get(volume, "")))
    return found

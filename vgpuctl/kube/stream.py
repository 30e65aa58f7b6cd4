"""Lists and watches: one copy of nodes, pods, leases and budgets, kept up to date by the API server's own events."""

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
    # Measured on kubemark 1.36: kubelet renews its Lease every 10 s. Only kubelet does (decision 0003).
    "leases": Kind("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", views.renewal),
    "budgets": Kind("/apis/policy/v1/poddisruptionbudgets", views.budget),
}
#: Needed only for drains. Kinds that are listed only here are skipped if access is denied.
DRAIN_KINDS = {
    "pods": Kind("/api/v1/pods", partial(views.pod, with_needs=True)),
    # kubectl drain: a pod whose DaemonSet is gone is an error unless forced.
    "daemonsets": Kind("/apis/apps/v1/daemonsets", views.daemon_set),
    # Kubernetes: an eviction counts against backoffLimit unless podFailurePolicy ignores DisruptionTarget.
    "jobs": Kind("/apis/batch/v1/jobs", views.job),
    "persistentvolumeclaims": Kind("/api/v1/persistentvolumeclaims", views.claim),
    # vSphere: a suspended VM keeps its disks, and so blocks their volumes on other nodes.
    "volumeattachments": Kind("/apis/storage.k8s.io/v1/volumeattachments", views.attachment),
}


#: Needed only for timetables that scale workloads.
SCALE_KINDS = {
    "deployments": Kind("/apis/apps/v1/deployments", workloads.deployment),
    "statefulsets": Kind("/apis/apps/v1/statefulsets", workloads.stateful_set),
    # Decision 0013: Kubernetes pauses an autoscaler whose target is at zero, but KEDA does not.
    "horizontalpodautoscalers": Kind("/apis/autoscaling/v2/horizontalpodautoscalers", workloads.autoscaler),
}

#: What a switch decides on just after it has taken the Lease.
#: Decision 0019: one list each, so a constant number of calls for any size.
REFRESHED = ("nodes", "pods", "deployments", "statefulsets")


class KubernetesStream:
    """The four basic kinds together, and the kinds for drains and scaling as far as we may see them."""

    def __init__(
        self, client: Client, on_change: Callable[[], None], *, drains: bool = False, scales: bool = False
    ) -> None:
        kinds = KINDS | (DRAIN_KINDS if drains else {}) | (SCALE_KINDS if scales else {})
        self._client, self._on_change = client, on_change
        self._machines = Machines(client, on_change)
        if drains:
            kinds = {**kinds, "nodes": self._machines.noticing_names(kinds["nodes"])}
        self.reflectors: dict[str, Reflector] = {
            name: Reflector(client, kind, on_change) for name, kind in kinds.items()
        }
        self.reflectors["machines"] = self._machines
        self._denied: tuple[str, ...] = ()

    def fill(self) -> None:
        """List all kinds, in this order.

        A pod's DaemonSet is listed after the pod, so it is missing only if it is gone. A kind that was listed before
        another failed is not listed again: its watch continues from there.
        """
        for name, reflector in tuple(self.reflectors.items()):
            if not reflector.heard and not self._fill_if_allowed(name, reflector):
                del self.reflectors[name]

    def _fill_if_allowed(self, name: str, reflector: Reflector) -> bool:
        try:
            reflector.fill()
        except (NotAllowedError, NotFoundError):
            if name in KINDS:
                raise
            # docs/reference/rights.md: without these rights a switch goes on, and its plan says what it cannot see.
            self._denied += (name,)
            return False
        return True

    def follow_workloads(self) -> None:
        """Follow workloads too, once the other kinds are followed: a timetable has begun to scale them."""
        for name, kind in SCALE_KINDS.items():
            if name in self.reflectors or name in self._denied:
                continue
            reflector = Reflector(self._client, kind, self._on_change)
            if self._fill_if_allowed(name, reflector):
                # Other threads read this mapping: it is replaced, never changed.
                self.reflectors = {**self.reflectors, name: reflector}
                reflector.follow()

    def refresh(self) -> None:
        """List nodes, pods and workloads once more, as they are now. PassingError if Kubernetes does not answer."""
        for name in REFRESHED:
            if name in self.reflectors:
                self.reflectors[name].refresh()
        if not self.heard:
            raise PassingError(f"Kubernetes cannot be heard: {self.silence}.")

    def follow(self) -> None:
        for reflector in self.reflectors.values():
            reflector.follow()

    def close(self) -> None:
        for reflector in self.reflectors.values():
            reflector.close()

    @property
    def heard(self) -> bool:
        return all(reflector.heard for reflector in self.reflectors.values())

    @property
    def silence(self) -> str:
        """Return why Kubernetes is not heard: the first reason and its kind, unless the server itself is silent."""
        reasons = ((name, reflector.silence) for name, reflector in self.reflectors.items() if not reflector.heard)
        found = (why if "Kubernetes at" in why else f"{name}: {why}" for name, why in reasons)
        return next(found, "")

    def unreadable(self) -> tuple[Unreadable, ...]:
        return tuple(each for reflector in self.reflectors.values() for each in reflector.unreadable())

    def nodes(self) -> list[SeenNode]:
        return self.reflectors["nodes"].objects()

    def renewals(self) -> list[Renewal]:
        return self.reflectors["leases"].objects()

    def pods(self) -> list[Pod]:
        return self.reflectors["pods"].objects()

    def budgets(self) -> list[Budget]:
        return self.reflectors["budgets"].objects()

    def unseen(self) -> tuple[str, ...]:
        return self._denied

    def machines(self) -> list[Machine]:
        return self._machines.objects()

    def without_machines(self) -> None:
        """Do without Machines: a mark was refused after all."""
        self._machines.disable()

    def daemon_sets(self) -> frozenset[str] | None:
        """Return the DaemonSets, or None if they are not known."""
        reflector = self.reflectors.get("daemonsets")
        return frozenset(reflector.objects()) if reflector else None

    def counting_jobs(self) -> frozenset[str]:
        """Return the Jobs that count an eviction as a failure."""
        reflector = self.reflectors.get("jobs")
        return frozenset(name for name, ignores in reflector.objects() if not ignores) if reflector else frozenset()

    def workloads(self) -> dict[str, Workload]:
        """Return the workloads by key, with what else is known to decide their size."""
        found = [each for kind in ("deployments", "statefulsets") for each in self._objects_of(kind)]
        return {each.key: each for each in workloads.with_deciders(found, self._objects_of("horizontalpodautoscalers"))}

    def _objects_of(self, kind: str) -> list[Any]:
        return self.reflectors[kind].objects() if kind in self.reflectors else []

    def disks(self) -> dict[str, list[Disk]] | None:
        """Return the disks attached to each node; None if attachments or their claims are not known."""
        if "volumeattachments" not in self.reflectors or "persistentvolumeclaims" not in self.reflectors:
            return None
        return disks_of(
            self.reflectors["volumeattachments"].objects(), self.reflectors["persistentvolumeclaims"].objects()
        )


def disks_of(attachments: list[tuple[str, str]], claims: list[tuple[str, str]]) -> dict[str, list[Disk]]:
    """Return the disks by node, in a stable order."""
    bound, found = dict(claims), dict[str, list[Disk]]()
    for node, volume in sorted(attachments):
        found.setdefault(node, []).append(Disk(volume, bound.get(volume, "")))
    return found

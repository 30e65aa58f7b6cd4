"""What vgpuctl may need to do in Kubernetes: the one table, for `vgpuctl rights kubernetes` and its reference page.

A test compares it with the requests that vgpuctl sends. No right is here that no request uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vgpuctl.kube.leases import LEADING

#: The names of our own objects: the Lease and the ConfigMap of departures, and the objects that grant the rights.
OURS = "vgpuctl"


class Scope(StrEnum):
    """Where a right holds."""

    CLUSTER = "cluster"
    HEARTBEATS = "kube-node-lease"
    OWN = "own namespace"


class Extra(StrEnum):
    """A use of vgpuctl that not every account needs."""

    SCALE = "scale"
    FORCE = "force"
    CLUSTER_API = "cluster-api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One rule. `names`: the only objects that it covers, if Kubernetes can bound it. `looks`: status and history use
    it, too. `without`: what happens without it. `note`: why it is not narrower.
    """

    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    purpose: str
    without: str
    group: str = ""
    scope: Scope = Scope.CLUSTER
    names: tuple[str, ...] = ()
    extra: Extra | None = None
    looks: bool = False
    note: str = ""


_BLIND = "every command that looks at workers ends with 5"
_NOT_ACTING = "whatever acts ends with 5"
_FOLLOW = ("list", "watch")
_NO_NAMES_FOR_CREATE = "Kubernetes cannot bound create to names."
_CHANGING_NAMES = "No names: those of the history change with each entry."

RIGHTS: tuple[Right, ...] = (
    Right(resources=("nodes",), verbs=_FOLLOW, purpose="seeing workers", without=_BLIND, looks=True),
    Right(
        resources=("nodes",),
        verbs=("patch",),
        purpose="cordons, labels, and the record of what must be given back",
        without=_NOT_ACTING,
    ),
    Right(
        resources=("pods",),
        verbs=_FOLLOW,
        purpose="seeing which pods are on a worker, and that none is left",
        without=_BLIND,
        looks=True,
    ),
    Right(
        resources=("pods/eviction",),
        verbs=("create",),
        purpose="drains",
        without="a switch or a provision with pods to evict ends with 5",
    ),
    Right(
        group="policy",
        resources=("poddisruptionbudgets",),
        verbs=_FOLLOW,
        purpose="foreseeing which evictions the budgets allow",
        without=_BLIND,
        looks=True,
    ),
    Right(
        group="apps",
        resources=("daemonsets",),
        verbs=_FOLLOW,
        purpose="seeing pods whose DaemonSet is gone, and rollouts that sleeping workers hold up",
        without="no DaemonSet counts as gone, and the plan says so; status shows no rollouts",
        looks=True,
    ),
    Right(
        group="batch",
        resources=("jobs",),
        verbs=_FOLLOW,
        purpose="naming Jobs that count evictions as failures",
        without="they are not named, and the plan says so",
    ),
    Right(
        group="storage.k8s.io",
        resources=("volumeattachments",),
        verbs=_FOLLOW,
        purpose="waiting until the volumes of pods that have left are off a node",
        without="nothing waits for that, and the plan says so",
    ),
    Right(
        resources=("persistentvolumeclaims",),
        verbs=_FOLLOW,
        purpose="telling these volumes from those of pods that stay",
        without="nothing waits for volumes, and the plan says so",
    ),
    Right(
        resources=("events",),
        verbs=("create",),
        purpose="notices to the owners of leaving pods, and on nodes when a coming shift is at risk",
        without="neither gets a notice",
    ),
    Right(
        resources=("resourcequotas",),
        verbs=_FOLLOW,
        purpose="the quota that waiting pods hold, in status",
        without="status shows no quotas",
        looks=True,
    ),
    Right(
        resources=("pods",),
        verbs=("delete",),
        purpose="pods that a drain leaves over, in timetables with on_stuck: force",
        without="such a switch ends with 5",
        extra=Extra.FORCE,
    ),
    Right(
        group="apps",
        resources=("deployments", "statefulsets"),
        verbs=_FOLLOW,
        purpose="the size of workloads, in timetables that scale them",
        without="such a switch is refused",
        extra=Extra.SCALE,
        looks=True,
    ),
    Right(
        group="apps",
        resources=("deployments", "statefulsets"),
        verbs=("patch",),
        purpose="scaling workloads, and marking them with their former size",
        without="such a switch ends with 5",
        extra=Extra.SCALE,
    ),
    Right(
        group="autoscaling",
        resources=("horizontalpodautoscalers",),
        verbs=_FOLLOW,
        purpose="seeing what else decides the size of workloads",
        without="nothing is known of autoscalers, and the plan says so",
        extra=Extra.SCALE,
        looks=True,
    ),
    Right(
        group="cluster.x-k8s.io",
        resources=("machines",),
        verbs=("list", "watch", "patch"),
        purpose="marking the Machines of sleeping workers for Cluster API's health checks",
        without="Machines are not marked, and the plan says so",
        extra=Extra.CLUSTER_API,
    ),
    Right(
        scope=Scope.HEARTBEATS,
        group="coordination.k8s.io",
        resources=("leases",),
        verbs=_FOLLOW,
        purpose="seeing that a node is truly back: its kubelet renews its Lease here",
        without=_BLIND,
        looks=True,
    ),
    Right(
        scope=Scope.OWN,
        group="coordination.k8s.io",
        resources=("leases",),
        names=(OURS, LEADING),
        verbs=("get",),
        purpose="seeing which instance acts, and which daemon leads",
        without="whatever acts ends with 5; the history shows a switch that runs as cut short",
        looks=True,
    ),
    Right(
        scope=Scope.OWN,
        group="coordination.k8s.io",
        resources=("leases",),
        names=(OURS, LEADING),
        verbs=("update",),
        purpose="taking, renewing and releasing the acting Lease, and a daemon's leading one",
        without=_NOT_ACTING,
    ),
    Right(
        scope=Scope.OWN,
        group="coordination.k8s.io",
        resources=("leases",),
        verbs=("create",),
        purpose="these Leases, where there are none",
        without="the first that acts ends with 5",
        note=_NO_NAMES_FOR_CREATE,
    ),
    Right(
        scope=Scope.OWN,
        resources=("configmaps",),
        names=(OURS,),
        verbs=("get",),
        purpose="seeing which hosts are on their way to a shift, and the orders of people",
        without="whatever acts or orders ends with 5; status shows no such hosts and orders",
        looks=True,
    ),
    Right(
        scope=Scope.OWN,
        resources=("configmaps",),
        names=(OURS,),
        verbs=_FOLLOW,
        purpose="following these hosts and orders, in status -w and the daemon",
        without="they know such hosts and orders only as of their start",
        looks=True,
    ),
    Right(
        scope=Scope.OWN,
        resources=("configmaps",),
        names=(OURS,),
        verbs=("patch",),
        purpose="recording, before a switch, where each host comes from; and giving orders",
        without="a switch or an order ends with 5",
    ),
    Right(
        scope=Scope.OWN,
        resources=("configmaps",),
        verbs=("create",),
        purpose="the first such record or order, and each entry of the history",
        without="the first switch or order ends with 5; later switches go on without a history, and say so",
        note=_NO_NAMES_FOR_CREATE,
    ),
    Right(
        scope=Scope.OWN,
        resources=("configmaps",),
        verbs=("list",),
        purpose="reading the history",
        without="a switch goes on without a history, and says so",
        looks=True,
        note=_CHANGING_NAMES,
    ),
    Right(
        scope=Scope.OWN,
        resources=("configmaps",),
        verbs=("get", "update", "delete"),
        purpose="writing the history, and deleting its oldest entries",
        without="a switch goes on without a history, and says so",
        note=_CHANGING_NAMES,
    ),
)


def rights(extras: frozenset[Extra] = frozenset(), *, read_only: bool = False) -> tuple[Right, ...]:
    """Return the rights of an account with these extra uses. `read_only`: only what status and history use."""
    chosen = (right for right in RIGHTS if right.extra is None or right.extra in extras)
    return tuple(right for right in chosen if right.looks or not read_only)

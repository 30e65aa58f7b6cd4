"""Pods, the budgets over them, and the quotas that count them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vgpuctl.model.places import Needs
from vgpuctl.model.selectors import Selector

GPU_RESOURCE = "nvidia.com/gpu"
#: The annotations by which pods ask not to be disrupted, as cluster-autoscaler and Karpenter read them.
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict=false"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt=true"
#: How long a pod may take to end if it does not say: the API server's own default.
GRACE_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a pod without a node asks of one, and why the scheduler has found none, in the scheduler's own words.

    `affinity`: one of these terms must hold; without terms it asks nothing.
    """

    gpus: int = 0
    affinity: tuple[Selector, ...] = ()
    unplaced: str = ""


class Freeze(StrEnum):
    """Whether a pod asks to sleep with its VM. `UNPREPARED`: it asks, but the taints of a silent node would end it."""

    NO = ""
    # Kubernetes: the taint manager deletes a silent node's pods after 300 s, unless they tolerate both taints for ever.
    UNPREPARED = "unprepared"
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod of Kubernetes.

    `demand`: None once it has a node. `needs`: None if they were not asked for.
    `not_now`: the annotations by which it asks not to be disrupted.
    `ends_by`: when it must have ended, once it is terminating. `overdue_s`: how long ago that was. `orphaned`: its
    DaemonSet is gone. `counted`: its Job counts an eviction as one more failure.
    """

    namespace: str
    name: str
    # kubernetes#138229: a name may be used again, a UID is not.
    uid: str
    node: str | None = None
    phase: str = "Running"
    ready: bool = True
    terminating: bool = False
    owner: str | None = None
    owner_uid: str = ""
    owner_version: str = ""
    ends_by: str = ""
    overdue_s: int = 0
    grace_s: int = GRACE_S
    # kubectl drain: an error unless forced.
    orphaned: bool = False
    counted: bool = False
    mirror: bool = False
    empty_dir: bool = False
    not_now: tuple[str, ...] = ()
    freeze: Freeze = Freeze.NO
    claims: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)
    demand: Demand | None = None
    needs: Needs | None = None

    def __str__(self) -> str:
        return self.called(self.namespace, self.name)

    @staticmethod
    def called(namespace: str, name: str) -> str:
        return name if namespace == "default" else f"{namespace}/{name}"

    @property
    def of_daemon_set(self) -> bool:
        return (self.owner or "").startswith("DaemonSet/")

    @property
    def finished(self) -> bool:
        return self.phase in {"Succeeded", "Failed"}


@dataclass(frozen=True, slots=True)
class Disk:
    """A volume that is attached to a node, and the claim that it is bound to: `namespace/name`."""

    # Kubernetes: a VolumeAttachment. While it is there, the volume can be attached to no other node.
    volume: str
    claim: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A PodDisruptionBudget: how many of the pods it covers may go now.

    It wants `desired` of its `expected` pods to be healthy, and `healthy` are. `seen`: False if the budget was changed
    after these were counted. `always`: pods that are not ready need not ask.
    """

    namespace: str
    name: str
    allowed: int
    covers: Selector
    desired: int = 0
    expected: int = 0
    healthy: int = 0
    always: bool = False
    # Kubernetes: until its controller has counted anew, the eviction API answers 429 with Retry-After 10 s.
    seen: bool = True
    version: str = ""

    def lets_go(self, pod: Pod) -> bool:
        """True if the pod may go without being counted.

        That is so for a pod that is not ready, with `always`, or if as many pods are healthy as must be.
        """
        # Kubernetes: with AlwaysAllow, unready pods need not ask; without it, only while enough pods are healthy.
        return not pod.ready and (self.always or self.healthy >= self.desired > 0)

    def __str__(self) -> str:
        """Return `gateway (0 of 1 left)`."""
        return f"{self.name} ({self.allowed} of {max(self.expected - self.desired, self.allowed)} left)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A ResourceQuota for GPUs: how many the pods of its namespace may ask for, and how many they do ask for."""

    namespace: str
    name: str
    used: int
    hard: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """A DaemonSet that is being updated: of `wanted` pods `updated` are new, and `most_out` may be missing at once."""

    namespace: str
    name: str
    wanted: int
    updated: int
    most_out: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

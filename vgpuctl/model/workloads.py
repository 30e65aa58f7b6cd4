"""Workloads that sleep in a shift: scaled to zero, and given back their size when it is over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.model.pods import Pod
from vgpuctl.model.record import ASLEEP, PREFIX, STATE_LABEL
from vgpuctl.model.selectors import Selector

#: Kinds that can be scaled, as files and keys write them, with the kind that owns their pods.
OWNS_PODS = {"deployment": "ReplicaSet", "statefulset": "StatefulSet"}

#: The API server's own bound for spec.replicas.
MOST_REPLICAS = 2**31 - 1

_FOR, _TIMETABLE, _SINCE = (PREFIX + name for name in ("for", "timetable", "since"))
SIZE_ANNOTATION = PREFIX + "replicas-before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """Our mark on a workload, written in the patch that scales it to zero.

    `replicas` None: the mark cannot be read, and `unreadable` says why.
    """

    shift: str
    timetable: str
    since: str
    replicas: int | None
    unreadable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A Deployment or StatefulSet. `decided_by`: what else sets its size, in words. `way_out`: what to change there."""

    kind: str
    namespace: str
    name: str
    version: str = ""
    replicas: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    covers: Selector = field(default_factory=Selector)
    # Decision 0013: the mark is on the workload itself, written in one patch with the size.
    scaled: Scaled | None = None
    # Kubernetes: replicas that an autoscaler or Git sets come back while we scale them down.
    decided_by: str = ""
    way_out: str = ""

    @property
    def key(self) -> str:
        """Return its key as people write it: `inference/deployment/gateway`."""
        return f"{self.namespace}/{self.kind}/{self.name}"

    @property
    def sleeps(self) -> bool:
        return self.replicas == 0

    def has(self, pod: Pod) -> bool:
        """True if the pod is one of its replicas. A bare pod with the same labels is none."""
        if pod.namespace != self.namespace or pod.owner is None:
            return False
        kind, _, name = pod.owner.partition("/")
        # Decision 0013: Kubernetes itself goes by the owner's kind and the selector.
        if kind != OWNS_PODS[self.kind]:
            return False
        return name == self.name if kind == "StatefulSet" else self.covers.matches(pod.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSelector:
    """Which workloads an entry of a file means: one by its name or glob, or all with these labels."""

    namespace: str = "*"
    kind: str = "*"
    name: str = "*"
    selector: Selector | None = None

    def means(self, workload: Workload) -> bool:
        names = ((self.namespace, workload.namespace), (self.kind, workload.kind), (self.name, workload.name))
        named = all(fnmatchcase(name, pattern) for pattern, name in names)
        return named and (self.selector is None or self.selector.matches(workload.labels))

    @property
    def key(self) -> str:
        """Return the key of a workload that is written out; "" for any other entry, which may match none."""
        key = f"{self.namespace}/{self.kind}/{self.name}"
        return "" if self.selector is not None or any(sign in key for sign in "*?[") else key


def workload_of(pod: Pod, workloads: tuple[Workload, ...]) -> Workload | None:
    return next((workload for workload in workloads if workload.has(pod)), None)


def read_scaled(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Scaled | None:
    """Return the mark that a workload bears; None if it bears none of ours.

    A mark that cannot be read is still a mark. If the workload were left out, it would never get its size back, without
    any report. People can write anything into annotations of their own workloads.
    """
    if labels.get(STATE_LABEL) != ASLEEP and SIZE_ANNOTATION not in annotations:
        return None
    said = {key: bounded.cut(annotations.get(key, "")) for key in (_FOR, _TIMETABLE, _SINCE)}
    # Measured: an annotation of 5,000 digits on any Deployment ended status, switch and daemon.
    replicas, why = None, ""
    try:
        replicas = bounded.whole(annotations.get(SIZE_ANNOTATION), SIZE_ANNOTATION, most=MOST_REPLICAS)
    except UnreadableError as error:
        why = str(error)
    return Scaled(shift=said[_FOR], timetable=said[_TIMETABLE], since=said[_SINCE], replicas=replicas, unreadable=why)


def scaled_labels(scaled: Scaled | None) -> dict[str, str | None]:
    return {STATE_LABEL: ASLEEP if scaled else None}


def scaled_annotations(scaled: Scaled | None) -> dict[str, str | None]:
    """Return the annotations that write the mark, or that take it off again."""
    if scaled is None:
        return dict.fromkeys((_FOR, _TIMETABLE, _SINCE, SIZE_ANNOTATION))
    return {
        _FOR: scaled.shift,
        _TIMETABLE: scaled.timetable,
        _SINCE: scaled.since,
        SIZE_ANNOTATION: str(scaled.replicas),
    }

"""What all controllers share: the clock, the store, and the ways to create and delete objects and record events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.kube.api import defaults
from vgpuctl.sim.kube.objects import (
    Object,
    condition,
    copied,
    is_finished,
    is_leaving,
    name_of,
    namespace_of,
    set_condition,
    timestamp,
    uid_of,
)
from vgpuctl.sim.kube.store import Store, path_of

#: kube-apiserver: `--event-ttl` is an hour by default.
EVENT_LIFE_S = 3600.0
#: Kubernetes: terminationGracePeriodSeconds, where the pod says nothing.
DEFAULT_GRACE_S = 30


#: Measured: kube-apiserver 1.36 gives this condition to a new pod with gates.
GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


@dataclass(frozen=True, slots=True)
class EventSource:
    """The component that an event names as its source. `utc`: its clock, if that is not the server's."""

    component: str
    instance: str = ""
    utc: Callable[[], datetime] | None = None


class ControllerContext:
    def __init__(self, clock: Clock, store: Store) -> None:
        self.clock = clock
        self.store = store
        self._event_names: dict[tuple[str, str, str], str] = {}

    def create(self, plural: str, item: Object) -> Object:
        """Create an object with the server's defaults, as a client's request would."""
        prepared = self.prepared(plural, item)
        return self.store.create(plural, prepared)

    def prepared(self, plural: str, item: Object) -> Object:
        item = copied(item)
        item["metadata"].setdefault("uid", self.store.new_uid())
        defaults.fill_in(plural, item)
        if plural == "pods" and item["spec"].get("schedulingGates") and condition(item, "PodScheduled") is None:
            set_condition(item, self.clock.utc(), GATED)
        return item

    def delete(self, plural: str, item: Object, grace_s: int | None = None) -> Object:
        """Delete as the server does: at once, or with a deletion timestamp while a kubelet or a finalizer still has
        work to do.
        """
        grace = self._grace_s(plural, item, grace_s)
        # Kubernetes: with a grace period, the kubelet deletes the pod in the end.
        if grace == 0 and not item["metadata"].get("finalizers"):
            return self.store.remove(*path_of(plural, item)) or item
        add_labels = self.store.edit(*path_of(plural, item), lambda it: self._mark_deleted(it, grace))
        return add_labels or item

    def release(self, pod: Object, finalizer: str) -> None:
        """Remove a finalizer from a pod; delete the pod if nothing else held it."""

        def change(found: Object) -> None:
            left = [other for other in found["metadata"].get("finalizers") or [] if other != finalizer]
            found["metadata"].pop("finalizers", None)
            if left:
                found["metadata"]["finalizers"] = left

        after = self.store.edit(*path_of("pods", pod), change)
        if after is not None and is_leaving(after) and not _is_held(after):
            self.store.remove(*path_of("pods", pod))

    def mark_disrupted(self, pod: Object, reason: str, message: str) -> None:
        """Set the DisruptionTarget condition, which says why the pod is about to be deleted."""
        # Kubernetes: evictions and the taint manager set it; a Job's podFailurePolicy may go by it.
        target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
        now = self.clock.utc()
        self.store.edit(*path_of("pods", pod), lambda item: set_condition(item, now, target))

    def record_event(
        self, about: Object, source: EventSource, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Create an Event. The same event for the same object only raises the count of the first one."""
        now = timestamp((source.utc or self.clock.utc)())
        key = (uid_of(about), reason, message)
        namespace = namespace_of(about) or "default"

        def count_again(event: Object) -> None:
            event["count"] += 1
            event["lastTimestamp"] = now

        if key in self._event_names and self.store.edit("events", namespace, self._event_names[key], count_again):
            return
        event = _event(about, source, (reason, message, "Warning" if warning else "Normal"), now)
        self._event_names[key] = name = f"{name_of(about)}.{self.store.suffix(16)}"
        event["metadata"] = {"name": name, "namespace": namespace}
        self.store.create("events", event)
        self.clock.after(EVENT_LIFE_S, lambda: self._forget(key, namespace, name))

    def _forget(self, key: tuple[str, str, str], namespace: str, name: str) -> None:
        self._event_names.pop(key, None)
        self.store.remove("events", namespace, name)

    def _grace_s(self, plural: str, item: Object, asked_s: int | None) -> int:
        # Kubernetes: a pod without a node, or one that has finished, needs no kubelet's work and is deleted at once.
        if plural != "pods" or not item["spec"].get("nodeName") or is_finished(item):
            return 0
        own: int = item["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
        # Measured: kube-apiserver 1.36 makes a second of a grace period below zero.
        grace = own if asked_s is None else asked_s if asked_s >= 0 else 1
        already = item["metadata"].get("deletionGracePeriodSeconds")
        # Kubernetes: a second deletion may only shorten the grace period.
        return grace if already is None else min(grace, already)

    def _mark_deleted(self, item: Object, grace_s: int) -> None:
        metadata = item["metadata"]
        if metadata.get("deletionTimestamp") and metadata.get("deletionGracePeriodSeconds", 0) <= grace_s:
            return
        metadata["deletionTimestamp"] = timestamp(self.clock.utc() + timedelta(seconds=grace_s))
        metadata["deletionGracePeriodSeconds"] = grace_s


def _is_held(item: Object) -> bool:
    """Return True while a finalizer or a running kubelet still has work to do."""
    metadata = item["metadata"]
    return bool(metadata.get("finalizers") or (metadata.get("deletionGracePeriodSeconds") and not is_finished(item)))


def _event(about: Object, source: EventSource, what: tuple[str, str, str], now: str) -> Object:
    reason, message, kind = what
    involved = {"kind": about["kind"], "apiVersion": about["apiVersion"], "name": name_of(about), "uid": uid_of(about)}
    if namespace_of(about):
        involved["namespace"] = namespace_of(about)
    component = {"component": source.component} | ({"host": source.instance} if source.instance else {})
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {},
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": kind,
        "source": component,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "eventTime": None,
        "reportingComponent": source.component,
        "reportingInstance": source.instance,
    }

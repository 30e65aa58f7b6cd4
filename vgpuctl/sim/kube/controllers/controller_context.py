"""What all controllers stand on: the clock, the store, and the few ways to create, delete and tell."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.kube.api import defaults
from vgpuctl.sim.kube.objects import (
    Object,
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

EVENT_LIFE_S = 3600.0
DEFAULT_GRACE_S = 30


@dataclass(frozen=True, slots=True)
class Teller:
    """Who writes an event."""

    component: str
    instance: str = ""


class ControllerContext:
    def __init__(self, clock: Clock, store: Store) -> None:
        self.clock = clock
        self.store = store
        self._told: dict[tuple[str, str, str], str] = {}

    def create(self, plural: str, item: Object) -> Object:
        """Create as any client would: with the server's defaults."""
        prepared = self.prepared(plural, item)
        return self.store.create(plural, prepared)

    def prepared(self, plural: str, item: Object) -> Object:
        item = copied(item)
        item["metadata"].setdefault("uid", self.store.new_uid())
        defaults.fill_in(plural, item)
        return item

    def delete(self, plural: str, item: Object, grace_s: int | None = None) -> Object:
        """Delete as the server does: at once, or by a mark while a kubelet or a finalizer still has work to do."""
        grace = self._grace_s(plural, item, grace_s)
        if grace == 0 and not item["metadata"].get("finalizers"):
            return self.store.remove(*path_of(plural, item)) or item
        marked = self.store.edit(*path_of(plural, item), lambda it: self._mark(it, grace))
        return marked or item

    def release(self, pod: Object, finalizer: str) -> None:
        """Take a finalizer off a pod; one that waited for nothing else goes."""

        def change(found: Object) -> None:
            left = [other for other in found["metadata"].get("finalizers") or [] if other != finalizer]
            found["metadata"].pop("finalizers", None)
            if left:
                found["metadata"]["finalizers"] = left

        after = self.store.edit(*path_of("pods", pod), change)
        if after is not None and is_leaving(after) and not _is_held(after):
            self.store.remove(*path_of("pods", pod))

    def disrupt(self, pod: Object, reason: str, message: str) -> None:
        """Say on the pod why it is about to be deleted."""
        said = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
        now = self.clock.utc()
        self.store.edit(*path_of("pods", pod), lambda item: set_condition(item, now, said))

    def tell(self, about: Object, teller: Teller, reason: str, message: str, *, warning: bool = False) -> None:
        """An Event; the same thing told again of the same object raises its count."""
        now = timestamp(self.clock.utc())
        key = (uid_of(about), reason, message)
        namespace = namespace_of(about) or "default"

        def again(event: Object) -> None:
            event["count"] += 1
            event["lastTimestamp"] = now

        if key in self._told and self.store.edit("events", namespace, self._told[key], again):
            return
        event = _event(about, teller, (reason, message, "Warning" if warning else "Normal"), now)
        self._told[key] = name = f"{name_of(about)}.{self.store.suffix(16)}"
        event["metadata"] = {"name": name, "namespace": namespace}
        self.store.create("events", event)
        self.clock.after(EVENT_LIFE_S, lambda: self._forget(key, namespace, name))

    def _forget(self, key: tuple[str, str, str], namespace: str, name: str) -> None:
        self._told.pop(key, None)
        self.store.remove("events", namespace, name)

    def _grace_s(self, plural: str, item: Object, asked_s: int | None) -> int:
        if plural != "pods" or not item["spec"].get("nodeName") or is_finished(item):
            return 0
        own: int = item["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
        grace = own if asked_s is None else max(0, asked_s)
        already = item["metadata"].get("deletionGracePeriodSeconds")
        return grace if already is None else min(grace, already)

    def _mark(self, item: Object, grace_s: int) -> None:
        metadata = item["metadata"]
        if metadata.get("deletionTimestamp") and metadata.get("deletionGracePeriodSeconds", 0) <= grace_s:
            return
        metadata["deletionTimestamp"] = timestamp(self.clock.utc() + timedelta(seconds=grace_s))
        metadata["deletionGracePeriodSeconds"] = grace_s


def _is_held(item: Object) -> bool:
    """A finalizer or a running kubelet still has work to do."""
    metadata = item["metadata"]
    return bool(metadata.get("finalizers") or (metadata.get("deletionGracePeriodSeconds") and not is_finished(item)))


def _event(about: Object, teller: Teller, said: tuple[str, str, str], now: str) -> Object:
    reason, message, kind = said
    involved = {"kind": about["kind"], "apiVersion": about["apiVersion"], "name": name_of(about), "uid": uid_of(about)}
    if namespace_of(about):
        involved["namespace"] = namespace_of(about)
    source = {"component": teller.component} | ({"host": teller.instance} if teller.instance else {})
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {},
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": kind,
        "source": source,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "eventTime": None,
        "reportingComponent": teller.component,
        "reportingInstance": teller.instance,
    }

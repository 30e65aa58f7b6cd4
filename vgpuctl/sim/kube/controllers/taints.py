"""Taint-based eviction: pods leave a node with a NoExecute taint when their toleration has expired."""

from __future__ import annotations

from vgpuctl.sim.clock import Timer
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    is_leaving,
    is_mirror,
    name_of,
    namespace_of,
    tolerates,
    uid_of,
)
from vgpuctl.sim.kube.store import Change, Key, key_of, path_of


class TaintEviction:
    """Deletes pods from nodes with a NoExecute taint, each at the moment that its first look at the taints gave it."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._scheduled: dict[str, Timer] = {}
        self._queue = Queue(context.clock, self._look_at_node)
        context.store.subscribe(["nodes"], self._node_changed)
        context.store.subscribe(["pods"], self._pod_changed)

    def _node_changed(self, change: Change) -> None:
        before = at(change.before, "spec.taints") if change.before else None
        if change.type != "DELETED" and at(change.object, "spec.taints") != before:
            self._queue.add(key_of(change.object))

    def _pod_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._cancel(uid_of(change.object))
        elif (node := change.object["spec"].get("nodeName")) and _asks_anew(change):
            self._queue.add(("", node))

    def _look_at_node(self, key: Key) -> None:
        node = self._context.store.get("nodes", *key)
        taints = _no_execute(node) if node else []
        if node is None or not (taints or self._scheduled):
            return
        for pod in self._context.store.where("pods", "spec.nodeName", name_of(node)):
            if not (is_mirror(pod) or is_leaving(pod)):
                self._look_at_pod(pod, taints)

    def _look_at_pod(self, pod: Object, taints: list[Object]) -> None:
        """Schedule the pod's deletion, or cancel it."""
        uid, stays_s = uid_of(pod), _stays_s(pod, taints)
        if stays_s is None or stays_s == 0:
            self._cancel(uid)
        if stays_s is None:
            return
        # Measured: kube-controller-manager 1.36 counts from its first look, not from the taint's `timeAdded`. A later
        # taint or toleration moves no scheduled deletion, unless the pod may now stay for ever or not at all.
        if uid not in self._scheduled:
            self._scheduled[uid] = self._context.clock.after(max(stays_s, LEAST_S), lambda: self._evict(pod))

    def _cancel(self, uid: str) -> None:
        if timer := self._scheduled.pop(uid, None):
            timer.cancel()

    def _evict(self, pod: Object) -> None:
        self._scheduled.pop(uid_of(pod), None)
        present = self._context.store.get(*path_of("pods", pod))
        if present is None or is_leaving(present) or uid_of(present) != uid_of(pod):
            return
        reason = "Taint manager: deleting due to NoExecute taint"
        # Kubernetes: the taint manager deletes and does not evict, so no budget holds it.
        self._context.mark_disrupted(present, "DeletionByTaintManager", reason)
        message = f"Marking for deletion Pod {namespace_of(pod)}/{name_of(pod)}"
        self._context.record_event(present, _EVENT_SOURCE, "TaintManagerEviction", message)
        self._context.delete("pods", self._context.store.get(*path_of("pods", pod)) or present)


# A pod that may not stay at all still goes a moment later. If it went at once and its controller created it again at
# once, the clock would never advance.
LEAST_S = 0.1
_EVENT_SOURCE = EventSource("taint-eviction-controller")


def _no_execute(node: Object) -> list[Object]:
    return [taint for taint in node["spec"].get("taints") or [] if taint["effect"] == "NoExecute"]


def _stays_s(pod: Object, taints: list[Object]) -> float | None:
    """Return for how long the pod may stay on a node with these taints; None if for ever."""
    # Measured: of the tolerations that match a taint, the first in the pod's list counts; of several taints, the
    # shortest. A limit of 0 or less is none.
    found = [next(iter(tolerates(pod, taint)), None) for taint in taints]
    if None in found:
        return 0.0
    limits = [each["tolerationSeconds"] for each in found if each and each.get("tolerationSeconds") is not None]
    return max(0.0, float(min(limits))) if limits else None


def _asks_anew(change: Change) -> bool:
    """Return True for a pod that came to a node, or tolerates something else than before."""
    before, after = (change.before or {}).get("spec") or {}, change.object["spec"]
    return any(before.get(field) != after.get(field) for field in ("nodeName", "tolerations"))

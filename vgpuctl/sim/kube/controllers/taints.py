"""Taint-based eviction: pods leave a node with a NoExecute taint when their toleration has expired."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    from_timestamp,
    is_finished,
    is_leaving,
    is_mirror,
    name_of,
    namespace_of,
    timestamp,
    tolerates,
    uid_of,
)
from vgpuctl.sim.kube.store import Change, Key, key_of, path_of


class TaintEviction:
    """Deletes pods from nodes with a NoExecute taint when their toleration has expired."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = Queue(context.clock, self._look_at_node)
        context.store.subscribe(["nodes"], self._node_changed)
        context.store.subscribe(["pods"], self._pod_changed)

    def _node_changed(self, change: Change) -> None:
        before = at(change.before, "spec.taints") if change.before else None
        if change.type != "DELETED" and at(change.object, "spec.taints") != before:
            self._queue.add(key_of(change.object))

    def _pod_changed(self, change: Change) -> None:
        node = change.object["spec"].get("nodeName")
        if node and change.type != "DELETED" and at(change.before or {}, "spec.nodeName") != node:
            self._queue.add(("", node))

    def _look_at_node(self, key: Key) -> None:
        node = self._context.store.get("nodes", *key)
        if node is None or not _no_execute(node):
            return
        for pod in self._context.store.where("pods", "spec.nodeName", name_of(node)):
            due_s = self._due_s(pod, node)
            if due_s is not None:
                self._context.clock.after(max(due_s, LEAST_S), lambda pod=pod: self._evict(pod))  # type: ignore[misc]

    def _due_s(self, pod: Object, node: Object) -> float | None:
        """Return the seconds until the pod must go, by the shortest toleration of all taints; None if it may stay."""
        if is_mirror(pod) or is_finished(pod) or is_leaving(pod):
            return None
        now = self._context.clock.utc()
        due: list[float] = []
        for taint in _no_execute(node):
            found = tolerates(pod, taint)
            limits = [toleration["tolerationSeconds"] for toleration in found if "tolerationSeconds" in toleration]
            since = from_timestamp(taint.get("timeAdded") or timestamp(now))
            if not found or limits:
                # Kubernetes: the shortest of all tolerations that match counts.
                due.append(min(limits, default=0) - (now - since).total_seconds())
        return max(0.0, min(due)) if due else None

    def _evict(self, pod: Object) -> None:
        present = self._context.store.get(*path_of("pods", pod))
        node = self._context.store.get("nodes", "", pod["spec"]["nodeName"])
        if present is None or node is None or uid_of(present) != uid_of(pod):
            return
        due_s = self._due_s(present, node)
        # datetime has microseconds, so the remaining time may be slightly above zero.
        if due_s is not None and due_s < 1e-3:
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

"""The node lifecycle controller: it marks silent nodes, and sets the taints of nodes."""

from __future__ import annotations

import math

from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.controllers.zones import Zones
from vgpuctl.sim.kube.machines import nodes, pod_status
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    condition,
    is_true,
    name_of,
    timestamp,
)
from vgpuctl.sim.kube.store import Change, Key, key_of, path_of

Pair = tuple[str, str]
_OWN_TAINTS = (nodes.UNREACHABLE, nodes.NOT_READY, nodes.UNSCHEDULABLE)
_EVENT_SOURCE = EventSource("node-controller")
#: kube-controller-manager: the pod garbage collector waits 40 s before it deletes pods of a node that is gone.
ORPHAN_S = 40.0
#: kube-controller-manager: `--node-monitor-period` is 5 s by default.
MONITOR_S = 5.0


class NodeLifecycle:
    """Judges nodes by their last heartbeat. A node with heartbeats has one timer, a silent one has none."""

    def __init__(self, context: ControllerContext, durations: Durations) -> None:
        self._context = context
        self._durations = durations
        self._last_heard_s: dict[str, float] = {}
        self._evictable: set[str] = set()
        self._taint_queue = Queue(context.clock, self._set_taints)
        self._zones = Zones(context, self)
        context.store.subscribe(["leases"], self._lease_changed)
        context.store.subscribe(["nodes"], self._node_changed)

    def _lease_changed(self, change: Change) -> None:
        namespace, name = key_of(change.object)
        if namespace == nodes.LEASE_NAMESPACE and change.type != "DELETED":
            self._note_heartbeat(name)

    def _note_heartbeat(self, name: str) -> None:
        if name not in self._last_heard_s:
            self._check_later(name, self._durations.node_grace_s)
        # kube-controller-manager: its own clock counts, and not the Lease's renewTime, which another clock wrote.
        self._last_heard_s[name] = self._context.clock.now_s

    def _check_later(self, name: str, delay_s: float) -> None:
        """Check again at the next of the common moments: the real controller looks at all nodes every 5 s."""
        due_s = math.ceil((self._context.clock.now_s + delay_s) / MONITOR_S) * MONITOR_S
        self._context.clock.after(due_s - self._context.clock.now_s, lambda: self._check(name))

    def _check(self, name: str) -> None:
        silent_s = self._context.clock.now_s - self._last_heard_s[name]
        # kube-controller-manager: `--node-monitor-grace-period` is 50 s by default. A shorter sleep passes unnoticed.
        if silent_s <= self._durations.node_grace_s:
            self._check_later(name, self._durations.node_grace_s - silent_s + 1e-3)
            return
        del self._last_heard_s[name]
        self._mark_silent(name)

    def _mark_silent(self, name: str) -> None:
        node = self._context.store.get("nodes", "", name)
        # Kubernetes: a node is marked once. Then only its kubelet makes it Ready again.
        if node is None or (condition(node, "Ready") or {}).get("status") == "Unknown":
            return
        now = self._context.clock.utc()
        self._context.store.edit("nodes", "", name, lambda item: nodes.post_unknown(item, now))
        self._context.record_event(node, _EVENT_SOURCE, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        for pod in self._context.store.where("pods", "spec.nodeName", name):
            # Kubernetes: pods of a lost node count as unavailable, although they may still run.
            if is_true(pod, "Ready"):
                self._context.store.edit(*path_of("pods", pod), lambda item: pod_status.not_ready(item, now))
                self._context.record_event(pod, _EVENT_SOURCE, "NodeNotReady", "Node is not ready", warning=True)

    def _node_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            gone = name_of(change.object)
            self._evictable.discard(gone)
            self._context.clock.after(ORPHAN_S, lambda: self._collect_orphans(gone))
            return
        if change.type == "ADDED":
            self._note_heartbeat(name_of(change.object))
        if set(self._wanted(change.object)) != _present(change.object):
            self._taint_queue.add(key_of(change.object))

    def allow_eviction(self, name: str) -> None:
        self._evictable.add(name)
        self._taint_queue.add(("", name))

    def stop_evictions(self) -> None:
        self._evictable.clear()
        for node in self._context.store.sorted("nodes"):
            if any(effect == "NoExecute" for _, effect in _present(node)):
                self._context.store.edit("nodes", "", name_of(node), _without_evictions)

    def resume_evictions(self) -> None:
        for name in self._last_heard_s:
            self._last_heard_s[name] = self._context.clock.now_s

    def _wanted(self, node: Object) -> list[Pair]:
        """Return the taints that the node should have. A node that is Ready again needs a new permission before it is
        emptied.
        """
        name = name_of(node)
        if is_true(node, "Ready"):
            self._evictable.discard(name)
        # Kubernetes: NoSchedule comes at once; NoExecute waits for the pace of the node's zone.
        evicts = name in self._evictable or any(effect == "NoExecute" for _, effect in _present(node))
        return [pair for pair in own_taints(node) if evicts or pair[1] != "NoExecute"]

    def _set_taints(self, key: Key) -> None:
        now = timestamp(self._context.clock.utc())

        def change(node: Object) -> None:
            wanted, present = self._wanted(node), _present(node)
            old: list[Object] = node["spec"].get("taints") or []
            kept = [taint for taint in old if _pair(taint) not in present or _pair(taint) in wanted]
            fresh = [_taint(pair, now) for pair in wanted if pair not in present]
            node["spec"].pop("taints", None)
            if kept + fresh:
                node["spec"]["taints"] = kept + fresh

        self._context.store.edit("nodes", *key, change)

    def _collect_orphans(self, name: str) -> None:
        if self._context.store.get("nodes", "", name) is None:
            for pod in self._context.store.where("pods", "spec.nodeName", name):
                # Kubernetes: by force, for no kubelet is left to end them.
                self._context.store.remove(*path_of("pods", pod))


def _without_evictions(node: Object) -> None:
    own = {(nodes.UNREACHABLE, "NoExecute"), (nodes.NOT_READY, "NoExecute")}
    left = [taint for taint in node["spec"].pop("taints", []) if _pair(taint) not in own]
    if left:
        node["spec"]["taints"] = left


def own_taints(node: Object) -> list[Pair]:
    """Return the taints that this controller sets on a node in this state."""
    ready = (condition(node, "Ready") or {}).get("status", "False")
    # Kubernetes: Ready=Unknown is a silent node, Ready=False one that says so itself.
    problem = {"Unknown": nodes.UNREACHABLE, "False": nodes.NOT_READY}.get(ready)
    wanted = [(problem, "NoSchedule"), (problem, "NoExecute")] if problem else []
    return [*wanted, (nodes.UNSCHEDULABLE, "NoSchedule")] if at(node, "spec.unschedulable") else wanted


def _present(node: Object) -> set[Pair]:
    pairs = {_pair(taint) for taint in node["spec"].get("taints") or []}
    return {pair for pair in pairs if pair[0] in _OWN_TAINTS}


def _pair(taint: Object) -> Pair:
    return taint["key"], taint["effect"]


def _taint(pair: Pair, now: str) -> Object:
    return {"key": pair[0], "effect": pair[1], "timeAdded": now}

"""The node lifecycle controller: silent nodes, their taints, and what the taints do to pods."""

from __future__ import annotations

import math

from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, Teller
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.controllers.zones import Zones
from vgpuctl.sim.kube.machines import nodes, podlife
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
_TELLER = Teller("node-controller")
ORPHAN_S = 40.0
MONITOR_S = 5.0


class NodeLifecycle:
    """Judges nodes by when it last heard of them. One timer a node that is heard of, none for a silent one."""

    def __init__(self, context: ControllerContext, durations: Durations) -> None:
        self._context = context
        self._durations = durations
        self._heard_s: dict[str, float] = {}
        self._let_go: set[str] = set()
        self._taint_queue = Queue(context.clock, self._set_taints)
        self._zones = Zones(context, self._may_be_emptied)
        context.store.subscribe(["leases"], self._lease_changed)
        context.store.subscribe(["nodes"], self._node_changed)

    def _lease_changed(self, change: Change) -> None:
        namespace, name = key_of(change.object)
        if namespace == nodes.LEASE_NAMESPACE and change.type != "DELETED":
            self._hear_of(name)

    def _hear_of(self, name: str) -> None:
        if name not in self._heard_s:
            self._look_later(name, self._durations.node_grace_s)
        self._heard_s[name] = self._context.clock.now_s

    def _look_later(self, name: str, delay_s: float) -> None:
        """At one of the moments at which all nodes are looked at."""
        due_s = math.ceil((self._context.clock.now_s + delay_s) / MONITOR_S) * MONITOR_S
        self._context.clock.after(due_s - self._context.clock.now_s, lambda: self._judge(name))

    def _judge(self, name: str) -> None:
        silent_s = self._context.clock.now_s - self._heard_s[name]
        if silent_s <= self._durations.node_grace_s:
            self._look_later(name, self._durations.node_grace_s - silent_s + 1e-3)
            return
        del self._heard_s[name]
        self._gone_silent(name)

    def _gone_silent(self, name: str) -> None:
        node = self._context.store.get("nodes", "", name)
        if node is None or (condition(node, "Ready") or {}).get("status") == "Unknown":
            return
        now = self._context.clock.utc()
        self._context.store.edit("nodes", "", name, lambda item: nodes.post_unknown(item, now))
        self._context.tell(node, _TELLER, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        for pod in self._context.store.where("pods", "spec.nodeName", name):
            if is_true(pod, "Ready"):
                self._context.store.edit(*path_of("pods", pod), lambda item: podlife.not_ready(item, now))
                self._context.tell(pod, _TELLER, "NodeNotReady", "Node is not ready", warning=True)

    def _node_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            gone = name_of(change.object)
            self._let_go.discard(gone)
            self._context.clock.after(ORPHAN_S, lambda: self._collect_orphans(gone))
            return
        if change.type == "ADDED":
            self._hear_of(name_of(change.object))
        if set(self._wanted(change.object)) != _present(change.object):
            self._taint_queue.add(key_of(change.object))

    def _may_be_emptied(self, name: str) -> None:
        self._let_go.add(name)
        self._taint_queue.add(("", name))

    def _wanted(self, node: Object) -> list[Pair]:
        """A node that is well again must ask anew before it is emptied the next time."""
        name = name_of(node)
        if is_true(node, "Ready"):
            self._let_go.discard(name)
        emptied = name in self._let_go or any(effect == "NoExecute" for _, effect in _present(node))
        return [pair for pair in own_taints(node) if emptied or pair[1] != "NoExecute"]

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
                self._context.store.remove(*path_of("pods", pod))


def own_taints(node: Object) -> list[Pair]:
    """The taints that this controller wants on a node in such a state."""
    ready = (condition(node, "Ready") or {}).get("status", "False")
    trouble = {"Unknown": nodes.UNREACHABLE, "False": nodes.NOT_READY}.get(ready)
    wanted = [(trouble, "NoSchedule"), (trouble, "NoExecute")] if trouble else []
    return [*wanted, (nodes.UNSCHEDULABLE, "NoSchedule")] if at(node, "spec.unschedulable") else wanted


def _present(node: Object) -> set[Pair]:
    pairs = {_pair(taint) for taint in node["spec"].get("taints") or []}
    return {pair for pair in pairs if pair[0] in _OWN_TAINTS}


def _pair(taint: Object) -> Pair:
    return taint["key"], taint["effect"]


def _taint(pair: Pair, now: str) -> Object:
    return {"key": pair[0], "effect": pair[1], "timeAdded": now}

"""vSphere's cloud provider, as far as workers notice it: it taints the nodes of VMs that do not run, and deletes the
nodes of VMs that are gone.
"""

from __future__ import annotations

import math
from typing import Protocol

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.objects import Object, is_true, name_of
from vgpuctl.sim.kube.store import Change

#: Kubernetes (cloud node lifecycle controller): the taint of a node whose VM is not powered on, suspended or off.
SHUTDOWN = {"key": "node.cloudprovider.kubernetes.io/shutdown", "effect": "NoSchedule"}
#: cloud-controller-manager: `--node-monitor-period` is 5 s by default.
MONITOR_S = 5.0
_EVENT_SOURCE = EventSource("cloud-node-lifecycle-controller")


class Vms(Protocol):
    """What the cloud provider asks vCenter."""

    def exists(self, vm: str) -> bool:
        """Return False once the VM was destroyed."""

    def powered(self, vm: str) -> bool:
        """Return True if the VM is powered on."""


class CloudProvider:
    """Looks at nodes every 5 s while one of them is not Ready, or bears the taint. Else no timer runs."""

    def __init__(self, context: ControllerContext, vms: Vms) -> None:
        self._context = context
        self._vms = vms
        self._watched: dict[str, None] = {}
        context.store.subscribe(["nodes"], self._node_changed)

    def _node_changed(self, change: Change) -> None:
        if change.type != "DELETED" and (not is_true(change.object, "Ready") or _is_tainted(change.object)):
            if not self._watched:
                self._look_later()
            self._watched[name_of(change.object)] = None

    def _look_later(self) -> None:
        now_s = self._context.clock.now_s
        self._context.clock.after((math.floor(now_s / MONITOR_S) + 1) * MONITOR_S - now_s, self._look)

    def _look(self) -> None:
        for name in tuple(self._watched):
            if self._is_settled(name):
                del self._watched[name]
        if self._watched:
            self._look_later()

    def _is_settled(self, name: str) -> bool:
        """Do what one look does; return True if the node needs no further look."""
        node = self._context.store.get("nodes", "", name)
        if node is None:
            return True
        # Kubernetes: a Ready node is never asked for at the cloud.
        if is_true(node, "Ready"):
            if _is_tainted(node):
                self._context.store.edit("nodes", "", name, _without_taint)
            return True
        if not self._vms.exists(name):
            message = f"Deleting node {name} because it does not exist in the cloud provider"
            self._context.record_event(node, _EVENT_SOURCE, "DeletingNode", message)
            self._context.delete("nodes", node)
            return True
        # vSphere's cloud provider: suspended counts as shut down, too. The node stays.
        if not self._vms.powered(name) and not _is_tainted(node):
            self._context.store.edit("nodes", "", name, _with_taint)
        return False


def _is_tainted(node: Object) -> bool:
    return any(taint["key"] == SHUTDOWN["key"] for taint in node["spec"].get("taints") or [])


def _with_taint(node: Object) -> None:
    node["spec"].setdefault("taints", []).append(dict(SHUTDOWN))


def _without_taint(node: Object) -> None:
    left = [taint for taint in node["spec"].pop("taints") if taint["key"] != SHUTDOWN["key"]]
    if left:
        node["spec"]["taints"] = left

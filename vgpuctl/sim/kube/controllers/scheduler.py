"""The scheduler: it binds pods to nodes, and reports why the others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from vgpuctl.sim.kube.api.defaults import DEFAULT_SCHEDULER
from vgpuctl.sim.kube.controllers.cluster_capacity import ClusterCapacity, NodeUsage
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.controllers.node_choice import (
    INSUFFICIENT,
    TOO_MANY_PODS,
    NodeChoice,
    PodRequirements,
    candidates_for,
    requirements_key,
)
from vgpuctl.sim.kube.controllers.queue import REACTION_S, Queue
from vgpuctl.sim.kube.objects import (
    Object,
    condition,
    is_finished,
    is_leaving,
    name_of,
    namespace_of,
    set_condition,
)
from vgpuctl.sim.kube.store import Change, Key, key_of

_EVENT_SOURCE = EventSource(DEFAULT_SCHEDULER)
# The real scheduler retries a pod after 1 to 10 s, so its messages follow a fast-changing cluster with a delay.
MESSAGE_EVERY_S = 5.0


@dataclass(slots=True)
class NodeRefusals:
    """Why each node refuses a pod, and how many nodes give each reason.

    The counts are kept as they change, because a large cluster has many nodes and few reasons.
    """

    _refusals: dict[str, list[str]] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _full_nodes: int = 0

    def __bool__(self) -> bool:
        return bool(self._refusals)

    def update(self, capacity: ClusterCapacity, refusals: Callable[[NodeUsage], list[str]], names: list[str]) -> None:
        for name in names:
            self._remove(name)
            self._add(name, refusals(capacity[name]))
        if len(self._refusals) > len(capacity):
            for name in [name for name in self._refusals if name not in capacity]:
                self._remove(name)

    def _add(self, name: str, reasons: list[str]) -> None:
        self._refusals[name] = reasons
        self._counts.update(reasons)
        self._full_nodes += _is_full(reasons)

    def _remove(self, name: str) -> None:
        reasons = self._refusals.pop(name, [])
        self._counts.subtract(reasons)
        self._full_nodes -= _is_full(reasons)

    def message(self) -> str:
        if not self._refusals:
            return "no nodes available to schedule pods"
        total = len(self._refusals)
        texts = sorted(f"{count} {reason}" for reason, count in self._counts.items() if count)
        full, others = self._full_nodes, total - self._full_nodes
        preemption = [f"{full} No preemption victims found for incoming pod"] if full else []
        preemption += [f"{others} Preemption is not helpful for scheduling"] if others else []
        # kube-scheduler: the words of its event. Preemption is reported, and never simulated.
        message = f"0/{total} nodes are available: "
        return f"{message}{', '.join(texts)}. preemption: {message}{', '.join(preemption)}."


def _is_full(reasons: list[str]) -> bool:
    return bool(reasons) and reasons[0].startswith((INSUFFICIENT, TOO_MANY_PODS))


@dataclass(slots=True)
class WaitingPods:
    """Pods that wait with equal requirements. `refusals`: why each node refuses them; empty until they were refused
    once.
    """

    requirements: PodRequirements
    pods: dict[Key, None] = field(default_factory=dict)
    refusals: NodeRefusals = field(default_factory=NodeRefusals)
    message: str = ""
    message_s: float = 0.0


class Scheduler:
    """Tries a pod when it appears, and waiting pods when a node has changed or may have room."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self.capacity = ClusterCapacity(context)
        self._groups: dict[str, WaitingPods] = {}
        self._group_of: dict[Key, str] = {}
        self._untried: set[Key] = set()
        self._queue = Queue(context.clock, lambda _: self._try_all(), REACTION_S)
        context.store.subscribe(["pods"], self._pod_changed)
        context.store.subscribe(["nodes"], lambda _: self._try_later())

    def _pod_changed(self, change: Change) -> None:
        key, pod = key_of(change.object), change.object
        if change.type == "DELETED" or is_finished(pod) or is_leaving(pod) or not _is_ours(pod):
            self._remove_waiting(key)
        elif change.before is None or change.before.get("spec") != pod.get("spec"):
            self._remove_waiting(key)
            self._add_waiting(key, pod)
        self._try_later()

    def _add_waiting(self, key: Key, pod: Object) -> None:
        group = requirements_key(pod)
        if group not in self._groups:
            self._groups[group] = WaitingPods(PodRequirements(pod))
        self._group_of[key] = group
        self._groups[group].pods[key] = None
        self._untried.add(key)

    def _remove_waiting(self, key: Key) -> None:
        group = self._group_of.pop(key, None)
        if group is not None:
            self._untried.discard(key)
            del self._groups[group].pods[key]
            if not self._groups[group].pods:
                del self._groups[group]

    def _try_later(self) -> None:
        """Without waiting pods, changed nodes are of no interest."""
        if not self._group_of:
            self.capacity.changed_nodes.clear()
        elif self.capacity.changed_nodes or self._untried:
            self._queue.add(("", ""))

    def _try_all(self) -> None:
        changed_nodes = self.capacity.present(sorted(self.capacity.changed_nodes))
        self.capacity.changed_nodes.clear()
        for waiting in tuple(self._groups.values()):
            self._bind_or_refuse(waiting, changed_nodes)

    def _bind_or_refuse(self, waiting: WaitingPods, changed_nodes: list[str]) -> None:
        """Bind as many pods as fit. Pods that were refused before only need the nodes that have changed since."""
        candidates = (
            NodeChoice(self.capacity, waiting.requirements, changed_nodes)
            if waiting.refusals
            else candidates_for(self.capacity, waiting.requirements)
        )
        for key in tuple(waiting.pods):
            node = candidates.best()
            if node is None:
                break
            self._bind(key, node)
        if waiting.pods:
            # Decision 0015: only nodes that have changed are judged again, so a burst of bindings stays cheap.
            names = changed_nodes if waiting.refusals else list(self.capacity)
            waiting.refusals.update(self.capacity, waiting.requirements.refusals, names)
            self._post_message(waiting)

    def _bind(self, key: Key, node: str) -> None:
        now = self._context.clock.utc()

        def bind(item: Object) -> None:
            item["spec"]["nodeName"] = node
            set_condition(item, now, {"type": "PodScheduled", "status": "True"})

        if pod := self._context.store.edit("pods", *key, bind):
            message = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
            self._context.record_event(pod, _EVENT_SOURCE, "Scheduled", message)

    def _post_message(self, waiting: WaitingPods) -> None:
        """Report at once why a new pod waits, and later changes of the reason at most every `MESSAGE_EVERY_S`."""
        why, now_s = waiting.refusals.message(), self._context.clock.now_s
        is_new = why != waiting.message and (not waiting.message or now_s >= waiting.message_s + MESSAGE_EVERY_S)
        for key in tuple(waiting.pods):
            if is_new or key in self._untried:
                self._refuse(key, why)
                self._untried.discard(key)
        if is_new:
            waiting.message, waiting.message_s = why, now_s
        elif why != waiting.message:
            self._context.clock.after(waiting.message_s + MESSAGE_EVERY_S - now_s, lambda: self._post_again(waiting))

    def _post_again(self, waiting: WaitingPods) -> None:
        if waiting.pods and waiting.refusals.message() != waiting.message:
            self._post_message(waiting)

    def _refuse(self, key: Key, why: str) -> None:
        now, pod = self._context.clock.utc(), self._context.store.get("pods", *key)
        unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
        # Kubernetes: a condition that says the same is not written again.
        if pod is None or (condition(pod, "PodScheduled") or {}).items() >= unscheduled.items():
            return
        self._context.store.edit("pods", *key, lambda item: set_condition(item, now, unscheduled))
        self._context.record_event(pod, _EVENT_SOURCE, "FailedScheduling", why, warning=True)


def _is_ours(pod: Object) -> bool:
    """Return True for a pod without a node that this scheduler may place now."""
    spec = pod["spec"]
    # Kubernetes: pods of other schedulers are left to them, and wait here for ever. Gated pods wait for their gates.
    return not spec.get("nodeName") and not spec.get("schedulingGates") and spec["schedulerName"] == DEFAULT_SCHEDULER

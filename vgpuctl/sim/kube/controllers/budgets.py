"""PodDisruptionBudgets: how many pods may be taken away now."""

from __future__ import annotations

from datetime import datetime

from vgpuctl.sim.kube.api.selectors import selector_test
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.int_or_percent import share
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    controller_of,
    from_timestamp,
    is_finished,
    is_leaving,
    is_true,
    labels_of,
    name_of,
    namespace_of,
    set_condition,
)
from vgpuctl.sim.kube.store import Change, Key, key_of

# How long an eviction that was let through is believed to come true.
DISRUPTED_S = 120.0
_PLURALS = {"ReplicaSet": "replicasets", "Deployment": "deployments", "StatefulSet": "statefulsets", "Job": "jobs"}


class Budgets:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = Queue(context.clock, self._look_at)
        context.store.subscribe(["poddisruptionbudgets"], lambda change: self._queue.add(key_of(change.object)))
        context.store.subscribe(["pods"], self._pod_changed)
        context.store.subscribe(["replicasets", "deployments", "statefulsets", "jobs"], self._scale_changed)

    def _pod_changed(self, change: Change) -> None:
        for budget in matching(self._context, change.object):
            self._queue.add(key_of(budget))

    def _scale_changed(self, change: Change) -> None:
        if change.before is None or change.before.get("spec") != change.object.get("spec"):
            for budget in self._context.store.all("poddisruptionbudgets"):
                if namespace_of(budget) == namespace_of(change.object):
                    self._queue.add(key_of(budget))

    def _look_at(self, key: Key) -> None:
        budget = self._context.store.get("poddisruptionbudgets", *key)
        if budget is None:
            return
        now = self._context.clock.utc()
        matches = selector_test(budget["spec"].get("selector"))
        pods = [
            pod
            for pod in self._context.store.sorted("pods", key[0])
            if matches(labels_of(pod)) and not is_finished(pod)
        ]
        expected = self._expected(pods)
        disrupted = _still_disrupted(budget, pods, now)
        self._context.store.edit(
            "poddisruptionbudgets", *key, lambda item: _count(item, pods, expected, disrupted, now)
        )
        if disrupted:
            self._context.clock.after(DISRUPTED_S, lambda: self._queue.add(key))

    def _expected(self, pods: list[Object]) -> int:
        """The scales of the pods' owners together: pods that are missing count as well."""
        owners: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is not None:
                top, scale = self._scale(namespace_of(pod), owner)
                owners[top] = scale
        return sum(owners.values())

    def _scale(self, namespace: str, owner: Object) -> tuple[str, int]:
        """Whose wish the pod fulfils, and how many it wishes: two ReplicaSets of a rollout have one Deployment."""
        plural = _PLURALS.get(owner["kind"])
        found = self._context.store.get(plural, namespace, owner["name"]) if plural else None
        above = controller_of(found) if found else None
        if above is not None and above["kind"] == "Deployment":
            return self._scale(namespace, above)
        return owner["uid"], int(at(found or {}, "spec.replicas") or at(found or {}, "spec.parallelism") or 0)


def matching(context: ControllerContext, pod: Object) -> list[Object]:
    """The budgets that speak for a pod."""
    budgets = context.store.sorted("poddisruptionbudgets", namespace_of(pod))
    return [budget for budget in budgets if selector_test(budget["spec"].get("selector"))(labels_of(pod))]


def _still_disrupted(budget: Object, pods: list[Object], now: datetime) -> dict[str, str]:
    present = {name_of(pod) for pod in pods if not is_leaving(pod)}
    entries: dict[str, str] = at(budget, "status.disruptedPods") or {}
    return {
        name: since
        for name, since in entries.items()
        if name in present and (now - from_timestamp(since)).total_seconds() < DISRUPTED_S
    }


def _count(budget: Object, pods: list[Object], expected: int, disrupted: dict[str, str], now: datetime) -> None:
    spec = budget["spec"]
    if isinstance(spec.get("minAvailable"), int):
        expected = len(pods)
    desired = _desired(spec, expected)
    healthy = sum(is_true(pod, "Ready") and not is_leaving(pod) and name_of(pod) not in disrupted for pod in pods)
    allowed = max(0, healthy - desired) if expected else 0
    status: Object = {"currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed}
    status |= {"expectedPods": expected, "observedGeneration": budget["metadata"]["generation"]}
    if disrupted:
        status["disruptedPods"] = disrupted
    budget["status"] = status | {"conditions": at(budget, "status.conditions") or []}
    say_allowed(budget, now)


def say_allowed(budget: Object, now: datetime) -> None:
    """The condition that goes with the number."""
    allowed = budget["status"]["disruptionsAllowed"] > 0
    said = {"type": "DisruptionAllowed", "status": "True" if allowed else "False", "message": ""}
    said["reason"] = "SufficientPods" if allowed else "InsufficientPods"
    set_condition(budget, now, said | {"observedGeneration": budget["metadata"]["generation"]})


def _desired(spec: Object, expected: int) -> int:
    if "maxUnavailable" in spec:
        return max(0, expected - share(spec["maxUnavailable"], expected, up=True))
    return share(spec.get("minAvailable"), expected, up=True)

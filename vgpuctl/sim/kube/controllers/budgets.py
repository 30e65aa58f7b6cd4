"""The disruption controller: how many pods each PodDisruptionBudget lets go now."""

from __future__ import annotations

from datetime import datetime

from vgpuctl.sim.kube.api.selectors import selector_test
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.int_or_percent import amount_of
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

# How long an evicted pod counts as disrupted although it is still there, as in Kubernetes' disruption controller.
DISRUPTED_S = 120.0
_PLURALS = {"ReplicaSet": "replicasets", "Deployment": "deployments", "StatefulSet": "statefulsets", "Job": "jobs"}


class Budgets:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._queue = Queue(context.clock, self._reconcile)
        context.store.subscribe(["poddisruptionbudgets"], lambda change: self._queue.add(key_of(change.object)))
        context.store.subscribe(["pods"], self._pod_changed)
        context.store.subscribe(["replicasets", "deployments", "statefulsets", "jobs"], self._scale_changed)

    def _pod_changed(self, change: Change) -> None:
        for budget in matching_budgets(self._context, change.object):
            self._queue.add(key_of(budget))

    def _scale_changed(self, change: Change) -> None:
        if change.before is None or change.before.get("spec") != change.object.get("spec"):
            for budget in self._context.store.all("poddisruptionbudgets"):
                if namespace_of(budget) == namespace_of(change.object):
                    self._queue.add(key_of(budget))

    def _reconcile(self, key: Key) -> None:
        budget = self._context.store.get("poddisruptionbudgets", *key)
        if budget is None:
            return
        now = self._context.clock.utc()
        matches = selector_test(budget["spec"].get("selector"))
        pods = [
            pod
            for pod in self._context.store.sorted("pods", key[0])
            # Kubernetes: finished pods count for no budget.
            if matches(labels_of(pod)) and not is_finished(pod)
        ]
        expected = self._expected_pods(pods)
        disrupted = _still_disrupted(budget, pods, now)
        self._context.store.edit(
            "poddisruptionbudgets", *key, lambda item: _set_status(item, pods, expected, disrupted, now)
        )
        if disrupted:
            # Kubernetes: an evicted pod that is still there after that time counts as healthy again.
            self._context.clock.after(DISRUPTED_S, lambda: self._queue.add(key))

    def _expected_pods(self, pods: list[Object]) -> int:
        """Return the sum of the scales of the pods' owners, so that missing pods count as well."""
        owners: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is not None:
                top, scale = self._owner_scale(namespace_of(pod), owner)
                owners[top] = scale
        return sum(owners.values())

    def _owner_scale(self, namespace: str, owner: Object) -> tuple[str, int]:
        """Return the owner's uid and its scale. For a Deployment's ReplicaSet it is the Deployment's: a rollout has two
        of them.
        """
        plural = _PLURALS.get(owner["kind"])
        found = self._context.store.get(plural, namespace, owner["name"]) if plural else None
        above = controller_of(found) if found else None
        # Kubernetes: the disruption controller goes up to the Deployment, too.
        if above is not None and above["kind"] == "Deployment":
            return self._owner_scale(namespace, above)
        return owner["uid"], int(at(found or {}, "spec.replicas") or at(found or {}, "spec.parallelism") or 0)


def matching_budgets(context: ControllerContext, pod: Object) -> list[Object]:
    """Return the budgets whose selector matches the pod."""
    budgets = context.store.sorted("poddisruptionbudgets", namespace_of(pod))
    return [budget for budget in budgets if selector_test(budget["spec"].get("selector"))(labels_of(pod))]


def _still_disrupted(budget: Object, pods: list[Object], now: datetime) -> dict[str, str]:
    present = {name_of(pod) for pod in pods if not is_leaving(pod)}
    entries: dict[str, str] = at(budget, "status.disruptedPods") or {}
    return {
        name: since
        for name, since in entries.items()
        # Kubernetes: a pod that leaves is known to be disrupted, so its entry is not needed any more.
        if name in present and (now - from_timestamp(since)).total_seconds() < DISRUPTED_S
    }


def _set_status(budget: Object, pods: list[Object], expected: int, disrupted: dict[str, str], now: datetime) -> None:
    spec = budget["spec"]
    # Kubernetes: a whole number needs no scale, so pods without an owner may count.
    if isinstance(spec.get("minAvailable"), int):
        expected = len(pods)
    desired = _desired_healthy(spec, expected)
    # Kubernetes: a pod whose eviction was allowed counts as gone, before its deletion is seen.
    healthy = sum(is_true(pod, "Ready") and not is_leaving(pod) and name_of(pod) not in disrupted for pod in pods)
    # Kubernetes: a budget that expects no pod allows nothing.
    allowed = max(0, healthy - desired) if expected else 0
    status: Object = {"currentHealthy": healthy, "desiredHealthy": desired, "disruptionsAllowed": allowed}
    status |= {"expectedPods": expected, "observedGeneration": budget["metadata"]["generation"]}
    if disrupted:
        status["disruptedPods"] = disrupted
    budget["status"] = status | {"conditions": at(budget, "status.conditions") or []}
    set_allowed_condition(budget, now)


def set_allowed_condition(budget: Object, now: datetime) -> None:
    """Set the condition that goes with `disruptionsAllowed`."""
    allowed = budget["status"]["disruptionsAllowed"] > 0
    condition = {"type": "DisruptionAllowed", "status": "True" if allowed else "False", "message": ""}
    condition["reason"] = "SufficientPods" if allowed else "InsufficientPods"
    set_condition(budget, now, condition | {"observedGeneration": budget["metadata"]["generation"]})


def _desired_healthy(spec: Object, expected: int) -> int:
    if "maxUnavailable" in spec:
        # Kubernetes: percentages of budgets are rounded up, of maxUnavailable as well.
        return max(0, expected - amount_of(spec["maxUnavailable"], expected, up=True))
    return amount_of(spec.get("minAvailable"), expected, up=True)

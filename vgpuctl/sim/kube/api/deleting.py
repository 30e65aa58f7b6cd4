"""DELETE and eviction: preconditions, disruption budgets, and the deletion itself."""

from __future__ import annotations

from collections.abc import Callable

from vgpuctl.sim.kube.api import errors
from vgpuctl.sim.kube.api.kinds import Kind
from vgpuctl.sim.kube.api.reading import existing, matching
from vgpuctl.sim.kube.api.request import Reply, Request, Target
from vgpuctl.sim.kube.api.writing import check_namespace
from vgpuctl.sim.kube.controllers.budgets import matching_budgets, set_allowed_condition
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    copied,
    is_finished,
    is_leaving,
    is_true,
    name_of,
    timestamp,
    uid_of,
)
from vgpuctl.sim.kube.store import OWNER, path_of

SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
#: kube-apiserver: MaxDisruptedPodSize.
_MAX_DISRUPTED = 2000


def delete(context: ControllerContext, request: Request, target: Target) -> Reply:
    item = existing(context.store, target)
    options = _options(request)
    _check_preconditions(target.kind, item, options)
    gone = item if request.dry_run else _delete(context, target.kind, item, options)
    # Measured: kube-apiserver 1.36 also returns the object while something holds it.
    if target.kind.returns_deleted or is_leaving(gone):
        return Reply(200, gone)
    details = {"name": target.name} | ({"group": target.kind.group} if target.kind.group else {})
    return Reply(200, SUCCESS | {"details": details | {"kind": target.kind.plural, "uid": uid_of(item)}})


def delete_collection(context: ControllerContext, request: Request, target: Target) -> list[Object]:
    options = _options(request)
    items = matching(context.store, request, target)
    return items if request.dry_run else [_delete(context, target.kind, item, options) for item in items]


def _delete(context: ControllerContext, kind: Kind, item: Object, options: Object) -> Object:
    if options.get("propagationPolicy") == "Orphan":
        _orphan(context, item)
    # Kubernetes: a namespace stays until everything in it is gone.
    if kind.plural != "namespaces":
        return context.delete(kind.plural, item, options.get("gracePeriodSeconds"))
    now = timestamp(context.clock.utc())

    def mark_terminating(namespace: Object) -> None:
        namespace["metadata"].setdefault("deletionTimestamp", now)
        namespace["status"] = {"phase": "Terminating"}

    return context.store.edit("namespaces", "", name_of(item), mark_terminating) or item


def _orphan(context: ControllerContext, owner: Object) -> None:
    def remove_owner(item: Object) -> None:
        owners = item["metadata"]["ownerReferences"]
        # Kubernetes: with `Orphan`, dependents lose their owner instead of being deleted.
        item["metadata"]["ownerReferences"] = [other for other in owners if other["uid"] != uid_of(owner)]

    for plural in ("replicasets", "pods"):
        for item in context.store.where(plural, OWNER, uid_of(owner)):
            context.store.edit(*path_of(plural, item), remove_owner)


def _options(request: Request) -> Object:
    options = request.json() if request.body.strip() else {}
    if not isinstance(options, dict):
        raise errors.bad_request("json: cannot unmarshal into Go value of type v1.DeleteOptions")
    return _checked(options | _from_query(request))


def _from_query(request: Request) -> Object:
    grace_s, policy = request.number("gracePeriodSeconds"), request.query.get("propagationPolicy")
    options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
    return options | ({"propagationPolicy": policy} if policy else {})


def _checked(options: Object) -> Object:
    grace_s, conditions = options.get("gracePeriodSeconds"), options.get("preconditions") or {}
    if grace_s is not None and (not isinstance(grace_s, int) or isinstance(grace_s, bool)):
        raise errors.bad_request(
            "json: cannot unmarshal into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
        )
    if not isinstance(conditions, dict):
        raise errors.bad_request("json: cannot unmarshal into Go struct field DeleteOptions.preconditions")
    return options


def _check_preconditions(kind: Kind, item: Object, options: Object) -> None:
    wanted = options.get("preconditions") or {}
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    # kubernetes#138229: a name may be used again, a UID is not. So an eviction should name the UID.
    if uid is not None and uid != uid_of(item):
        raise errors.precondition(kind, name_of(item), "UID", str(uid), uid_of(item))
    present = item["metadata"]["resourceVersion"]
    if version is not None and version != present:
        raise errors.precondition(kind, name_of(item), "ResourceVersion", str(version), present)


def evict(context: ControllerContext, request: Request, target: Target) -> Reply:
    """Evict a pod. As on a real 1.36 server, the budget is charged before the preconditions are checked (measured)."""
    eviction = request.json()
    if not isinstance(eviction, dict) or not isinstance(eviction.get("metadata") or {}, dict):
        raise errors.bad_request("couldn't get version/kind; json parse error")
    metadata = eviction.get("metadata") or {}
    if metadata.get("namespace") not in (None, "", target.namespace):
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    # Measured: kube-apiserver 1.36 answers 400 here.
    if metadata.get("name") != target.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    check_namespace(context, target.kind, target.name, target.namespace)
    options = eviction.get("deleteOptions") or {}
    if not isinstance(options, dict):
        raise errors.bad_request("json: cannot unmarshal into Go struct field Eviction.deleteOptions")
    dry_run = request.dry_run or options.get("dryRun") == ["All"]
    _evict(context, target, _checked(options), dry_run)
    return Reply(201, SUCCESS | {"code": 201})


def _evict(context: ControllerContext, target: Target, options: Object, dry_run: bool) -> None:
    pod = existing(context.store, target)
    # Kubernetes: pending, finished and leaving pods go past every budget.
    free = is_finished(pod) or is_leaving(pod) or at(pod, "status.phase") == "Pending"
    if not free:
        _charge_budget(context, pod, dry_run)
    # Measured: kube-apiserver 1.36 answers 409 to another UID.
    _check_preconditions(target.kind, pod, options)
    if dry_run:
        return
    # Kubernetes: the pod says why it goes. A Job's podFailurePolicy may go by that.
    context.mark_disrupted(pod, "EvictionByEvictionAPI", "Eviction API: evicting")
    present = existing(context.store, target)
    context.delete("pods", present, options.get("gracePeriodSeconds"))


def _charge_budget(context: ControllerContext, pod: Object, dry_run: bool) -> None:
    budgets = matching_budgets(context, pod)
    if len(budgets) > 1:
        # Measured: kube-apiserver 1.36 answers 500, and kubectl drain fails the pod at once.
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise errors.internal(message)
    if not budgets or _may_evict_unready(pod, budgets[0]):
        return
    budget = budgets[0]
    _check_budget(budget)
    # Measured: kube-apiserver 1.36 refuses a dry run as it refuses an eviction. One that passes spends nothing.
    if not dry_run:
        context.store.edit(*path_of("poddisruptionbudgets", budget), _charge(context, pod))


def _may_evict_unready(pod: Object, budget: Object) -> bool:
    if is_true(pod, "Ready"):
        return False
    status = budget.get("status") or {}
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    # Kubernetes: with AlwaysAllow, unready pods need not ask. Without it, they go while enough others are healthy.
    always = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return always or bool(healthy >= desired > 0)


def _check_budget(budget: Object) -> None:
    name, status = name_of(budget), budget.get("status") or {}
    # Measured: kube-apiserver 1.36 answers 429 with Retry-After 10, until its controller has counted the budget.
    if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        raise errors.too_many_requests(f"The disruption budget {name} is still being processed by the server.", 10)
    if len(status.get("disruptedPods") or {}) > _MAX_DISRUPTED:
        message = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.ApiError(403, "Forbidden", message)
    # Measured: kube-apiserver 1.36 answers 429 without Retry-After, and names the budget in the cause.
    if status.get("disruptionsAllowed", 0) <= 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise errors.too_many_requests(
            f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        )


def _charge(context: ControllerContext, pod: Object) -> Callable[[Object], None]:
    now = context.clock.utc()

    def charge(budget: Object) -> None:
        status = copied(budget["status"])
        # Kubernetes: an eviction spends its allowance at once. The disruption controller counts again later.
        status["disruptionsAllowed"] -= 1
        status["disruptedPods"] = (status.get("disruptedPods") or {}) | {name_of(pod): timestamp(now)}
        budget["status"] = status
        if status["disruptionsAllowed"] == 0:
            set_allowed_condition(budget, now)

    return charge

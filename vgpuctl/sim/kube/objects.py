"""Helpers for Kubernetes objects, which are plain JSON here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from vgpuctl.sim.kube.quantities import quantity

Object = dict[str, Any]
Requests = dict[str, float]
#: Kubernetes: the resources that a pod may request as a whole, beside hugepages.
_OF_WHOLE_PODS = ("cpu", "memory")
FINISHED = ("Succeeded", "Failed")


def copied(value: Any) -> Any:
    """Return a deep copy. For plain JSON it is several times faster than copy.deepcopy."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def without_nulls(value: Any) -> Any:
    """Return a deep copy without null fields, as the server decodes it."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def timestamp(moment: datetime) -> str:
    # Kubernetes: times have whole seconds, so two heartbeats of one second look the same.
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime) -> str:
    # Kubernetes: Leases have microseconds (MicroTime).
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def name_of(item: Object) -> str:
    return str(item["metadata"]["name"])


def namespace_of(item: Object) -> str:
    return str(item["metadata"].get("namespace", ""))


def uid_of(item: Object) -> str:
    return str(item["metadata"]["uid"])


def labels_of(item: Object) -> dict[str, str]:
    return (item.get("metadata") or {}).get("labels") or {}


def annotations_of(item: Object) -> dict[str, str]:
    return (item.get("metadata") or {}).get("annotations") or {}


def at(item: Object, path: str) -> Any:
    """Return the value at a dotted path, or None."""
    value: Any = item
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def controller_of(item: Object) -> Object | None:
    owners: list[Object] = item["metadata"].get("ownerReferences") or []
    # Kubernetes: an object may have several owners, and one controller among them.
    return next((owner for owner in owners if owner.get("controller")), None)


def owner_reference(owner: Object, *, controller: bool = True) -> Object:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid_of(owner)}
    return reference | ({"controller": True, "blockOwnerDeletion": True} if controller else {})


def condition(item: Object, wanted: str) -> Object | None:
    conditions: list[Object] = (item.get("status") or {}).get("conditions") or []
    for found in conditions:
        if found.get("type") == wanted:
            return found
    return None


def set_condition(item: Object, when: datetime, wanted: Object) -> None:
    """Set a condition. Its lastTransitionTime changes only when its status does."""
    conditions: list[Object] = item.setdefault("status", {}).setdefault("conditions", [])
    former = next((found for found in conditions if found.get("type") == wanted["type"]), None)
    if former is not None and former.get("status") == wanted["status"]:
        since = former.get("lastTransitionTime") or timestamp(when)
    else:
        since = timestamp(when)
    fresh = wanted | {"lastTransitionTime": since}
    if former is None:
        conditions.append(fresh)
    else:
        conditions[conditions.index(former)] = fresh


def is_true(item: Object, wanted: str) -> bool:
    return (condition(item, wanted) or {}).get("status") == "True"


def is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED


def is_leaving(item: Object) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))


def is_active(pod: Object) -> bool:
    return not is_finished(pod) and not is_leaving(pod)


def is_mirror(pod: Object) -> bool:
    # kubelet: the API's picture of a static pod. Deleting it deletes no container.
    return "kubernetes.io/config.mirror" in annotations_of(pod)


def requests_of(pod: Object) -> Requests:
    """Return what the pod takes of its node at most at any moment, and one of the node's `pods`."""
    spec = pod["spec"]
    # Kubernetes: a node has a limit for its pods as well.
    total: Requests = {"pods": 1.0}
    for container in spec.get("containers") or []:
        _add(total, _requests(container))
    sidecars: Requests = {}
    peaks: list[Requests] = []
    for container in spec.get("initContainers") or []:
        # Kubernetes (PodRequests): a sidecar stays. An init container runs beside the sidecars that began before it.
        if is_sidecar(container):
            _add(total, _requests(container))
            _add(sidecars, _requests(container))
            peaks.append(dict(sidecars))
        else:
            _add(peak := dict(sidecars), _requests(container))
            peaks.append(peak)
    for peak in peaks:
        for resource, amount in peak.items():
            total[resource] = max(total.get(resource, 0.0), amount)
    # Kubernetes: what is requested for the whole pod counts instead of its containers' requests.
    for resource, amount in _requests(spec).items():
        if resource in _OF_WHOLE_PODS or resource.startswith("hugepages-"):
            total[resource] = amount
    _add(total, {resource: quantity(amount) for resource, amount in (spec.get("overhead") or {}).items()})
    return total


def is_sidecar(container: Object) -> bool:
    """Return True for an init container that goes on running."""
    return container.get("restartPolicy") == "Always"


def _requests(asking: Object) -> Requests:
    asked = (asking.get("resources") or {}).get("requests") or {}
    return {resource: quantity(amount) for resource, amount in asked.items()}


def _add(total: Requests, more: Requests) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0.0) + amount


def tolerates(pod: Object, taint: Object) -> list[Object]:
    """Return the pod's tolerations that match the taint."""
    return [toleration for toleration in pod["spec"].get("tolerations") or [] if _matches(toleration, taint)]


def _matches(toleration: Object, taint: Object) -> bool:
    # Kubernetes: an empty effect means all effects, an empty key with Exists all keys.
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")

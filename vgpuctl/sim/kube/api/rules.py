"""Fields that cannot change after an object's creation."""

from __future__ import annotations

import json

from vgpuctl.sim.kube.api.errors import invalid
from vgpuctl.sim.kube.api.kinds import Kind
from vgpuctl.sim.kube.api.rbac_rules import changed_reference
from vgpuctl.sim.kube.objects import Object, at, copied

_POD_RULE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_STATEFULSET_RULE = (
    "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_PROVIDER_RULE = 'Forbidden: node updates may not change providerID except from "" to valid'
_CLAIM_RULE = (
    "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
    "claims"
)
#: Kubernetes: immutable. A changed selector would orphan the pods that it matched.
_FIXED = {
    "deployments": ("spec.selector",),
    "replicasets": ("spec.selector",),
    "daemonsets": ("spec.selector",),
    "jobs": ("spec.selector", "spec.template", "spec.completions", "spec.podFailurePolicy"),
    "volumeattachments": ("spec",),
}
_MUTABLE = ("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds")
_MUTABLE_OF_PODS = ("tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "schedulingGates")
Cause = tuple[str, str, str]


def check_change(kind: Kind, before: Object, after: Object) -> None:
    """Refuse a change that the real server would refuse because of the object's present state."""
    if before.get("roleRef") != after.get("roleRef"):
        raise invalid(kind, after["metadata"]["name"], [changed_reference(after)])
    # Kubernetes: a Secret's type says what its data must be, and stays.
    if kind.plural == "secrets" and before.get("type") != after.get("type"):
        raise invalid(kind, after["metadata"]["name"], [_immutable("type", after.get("type"))])
    if before.get("spec") == after.get("spec"):
        return
    causes = [
        _immutable(path, at(after, path)) for path in _FIXED.get(kind.plural, ()) if at(before, path) != at(after, path)
    ]
    # Kubernetes: of a suspended Job's template, the parts about scheduling may change. Here all of it may.
    if kind.plural == "jobs" and at(before, "spec.suspend"):
        causes = [cause for cause in causes if cause[0] != "spec.template"]
    causes += _kind_rules(kind, before.get("spec") or {}, after.get("spec") or {})
    if causes:
        raise invalid(kind, after["metadata"]["name"], causes)


def _immutable(path: str, value: object) -> Cause:
    encoded = json.dumps(value, separators=(",", ":"), sort_keys=True)
    return path, "FieldValueInvalid", f"Invalid value: {encoded}: field is immutable"


def _kind_rules(kind: Kind, before: Object, after: Object) -> list[Cause]:
    # Kubernetes: a provider's id is set once. A kubelet may set it when it registers its node (decision 0017).
    if kind.plural == "nodes" and before.get("providerID") and before["providerID"] != after.get("providerID"):
        return [("spec.providerID", "FieldValueForbidden", _PROVIDER_RULE)]
    if kind.plural == "pods":
        return _pod_rules(before, after)
    if kind.plural == "statefulsets" and _without(before, _MUTABLE) != _without(after, _MUTABLE):
        return [("spec", "FieldValueForbidden", _STATEFULSET_RULE)]
    bound = kind.plural == "persistentvolumeclaims" and before.get("volumeName")
    if bound and _without(before, ("resources",)) != _without(after, ("resources",)):
        return [("spec", "FieldValueForbidden", _CLAIM_RULE)]
    return []


def _pod_rules(before: Object, after: Object) -> list[Cause]:
    causes = [*_new_gates(before, after), *_deadline_causes(before, after)]
    if causes:
        return causes
    if not (_fixed_part(before) == _fixed_part(_with_selector_of(before, after)) and _keeps_tolerations(before, after)):
        return [("spec", "FieldValueForbidden", _POD_RULE)]
    return []


def _with_selector_of(before: Object, after: Object) -> Object:
    """Return the new spec with the old nodeSelector, if the pod is gated and the new one only asks for more."""
    old, new = before.get("nodeSelector") or {}, after.get("nodeSelector") or {}
    # Measured: of a gated pod kube-apiserver 1.36 lets a nodeSelector grow.
    if not before.get("schedulingGates") or not old.items() <= new.items():
        return after
    return _without(after, ("nodeSelector",)) | ({"nodeSelector": old} if old else {})


def _new_gates(before: Object, after: Object) -> list[Cause]:
    old = [gate["name"] for gate in before.get("schedulingGates") or []]
    why = "Forbidden: only deletion is allowed, but found new scheduling gate"
    # Measured: kube-apiserver 1.36 lets gates only be taken away.
    return [
        (f"spec.schedulingGates[{number}].name", "FieldValueForbidden", f"{why} '{gate['name']}'")
        for number, gate in enumerate(after.get("schedulingGates") or [])
        if gate["name"] not in old
    ]


def _deadline_causes(before: Object, after: Object) -> list[Cause]:
    """A pod's deadline may be set, and may come nearer."""
    old, new = (spec.get("activeDeadlineSeconds") for spec in (before, after))
    if old is None or (new is not None and new <= old):
        return []
    # Measured: the words of kube-apiserver 1.36.
    why = "must not update from a positive integer to nil value"
    if new is not None:
        why = "must be less than or equal to previous value"
    return [("spec.activeDeadlineSeconds", "FieldValueInvalid", f"Invalid value: {json.dumps(new)}: {why}")]


def _keeps_tolerations(before: Object, after: Object) -> bool:
    """A pod's tolerations may only be added to."""
    # Measured: such an addition buys no time on a lost node. The 300 s stay: the first toleration that matches counts.
    present = after.get("tolerations") or []
    return all(toleration in present for toleration in before.get("tolerations") or [])


def _fixed_part(spec: Object) -> Object:
    fixed: Object = copied(_without(spec, _MUTABLE_OF_PODS))
    for container in [*(fixed.get("containers") or []), *(fixed.get("initContainers") or [])]:
        container.pop("image", None)
    return fixed


def _without(spec: Object, fields: tuple[str, ...]) -> Object:
    return {name: value for name, value in spec.items() if name not in fields}

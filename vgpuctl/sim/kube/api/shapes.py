"""Checks an object's types and values before it is stored. Only fields that the simulated world reads are checked."""

from __future__ import annotations

import json
import re
from typing import Any

from vgpuctl.sim.kube.api import events, pod_specs, rbac_rules, secrets
from vgpuctl.sim.kube.api.errors import ApiError, invalid
from vgpuctl.sim.kube.api.kinds import Kind
from vgpuctl.sim.kube.api.resource_lists import QUANTITIES, are_quantities, canonical_lists, negative_amounts
from vgpuctl.sim.kube.api.selectors import selector_test
from vgpuctl.sim.kube.controllers import int_or_percent
from vgpuctl.sim.kube.objects import Object, at, from_timestamp, labels_of

TEXTS, INT_OR_PERCENT, ENCODED = "map[string]string", "intstr.IntOrString", "map[string][]byte"
TIME, TIMES = "v1.Time", "map[string]v1.Time"
#: Kubernetes: an RFC 1123 subdomain, 253 characters at most.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
#: Kubernetes: at most 63 characters, alphanumeric ends, and `-_.` inside.
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

# A schema is a type, one of the words above, a list with one schema, or a dict of fields. A field with `!` is required;
# fields that are not named may contain anything.
Schema = Any
_RESOURCES = {"requests": QUANTITIES, "limits": QUANTITIES}
_CONTAINER = {"!name": str, "image": str, "resources": _RESOURCES, "restartPolicy": str}
_TOLERATION = {"key": str, "operator": str, "effect": str, "value": str, "tolerationSeconds": int}
_EXPRESSION = {"!key": str, "!operator": str, "values": [str]}
_SELECTOR = {"matchLabels": TEXTS, "matchExpressions": [_EXPRESSION]}
_NODE_TERMS = {"!nodeSelectorTerms": [{"matchExpressions": [_EXPRESSION], "matchFields": [_EXPRESSION]}]}
_POD_TERMS = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": str}]}
_AFFINITY = {
    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _NODE_TERMS},
    **{"podAffinity": _POD_TERMS, "podAntiAffinity": _POD_TERMS},
}
_VOLUME = {"!name": str, "persistentVolumeClaim": {"!claimName": str}}
_SPREAD = {"topologyKey": str, "maxSkew": int, "whenUnsatisfiable": str, "labelSelector": _SELECTOR}
_POD_SPEC = {
    "nodeName": str,
    "nodeSelector": TEXTS,
    "restartPolicy": str,
    "terminationGracePeriodSeconds": int,
    "containers": [_CONTAINER],
    "tolerations": [_TOLERATION],
    "topologySpreadConstraints": [_SPREAD],
    "affinity": _AFFINITY,
    "volumes": [_VOLUME],
    "hostNetwork": bool,
    "schedulerName": str,
    "initContainers": [_CONTAINER],
    "schedulingGates": [{"name": str}],
    "activeDeadlineSeconds": int,
    **{"priority": int, "priorityClassName": str, "preemptionPolicy": str},
    **{"resources": _RESOURCES, "overhead": QUANTITIES},
}
_CONDITION_TIMES = {"lastTransitionTime": TIME, "lastHeartbeatTime": TIME}
_CONDITIONS = {"conditions": [{"!type": str, "!status": str} | _CONDITION_TIMES]}
_TEMPLATE = {"metadata": {"labels": TEXTS, "annotations": TEXTS}, "spec": _POD_SPEC}
_REPLICAS: dict[str, type] = {
    f"{kind}eplicas": int for kind in ("r", "readyR", "availableR", "updatedR", "unavailableR", "currentR")
}
_REPLICAS |= dict.fromkeys(("currentRevision", "updateRevision"), str)
_ROLLING = {"maxSurge": INT_OR_PERCENT, "maxUnavailable": INT_OR_PERCENT, "partition": int}
_STRATEGY = {"type": str, "rollingUpdate": _ROLLING}
_CLAIM = {"volumeName": str, "storageClassName": str, "accessModes": [str], "resources": {"requests": QUANTITIES}}
_WORKLOAD = {
    "spec": {
        **{"replicas": int, "selector": _SELECTOR, "template": _TEMPLATE, "paused": bool, "podManagementPolicy": str},
        **{"strategy": _STRATEGY, "updateStrategy": _STRATEGY, "serviceName": str},
        "volumeClaimTemplates": [{"!metadata": {"!name": str, "labels": TEXTS, "annotations": TEXTS}, "spec": _CLAIM}],
    },
    "status": _REPLICAS | _CONDITIONS,
}
_METADATA = {
    "name": str,
    "namespace": str,
    "generateName": str,
    "resourceVersion": str,
    "uid": str,
    "labels": TEXTS,
    "annotations": TEXTS,
    "finalizers": [str],
    "ownerReferences": [{"!apiVersion": str, "!kind": str, "!name": str, "!uid": str, "controller": bool}],
}
_TAINT = {"!key": str, "!effect": str, "value": str, "timeAdded": TIME}
_ADDRESS = {"!type": str, "!address": str}
_STATE = {"waiting": {"reason": str}, "running": {"startedAt": TIME}, "terminated": {"reason": str, "exitCode": int}}
_CONTAINER_STATUS = {"!name": str, "ready": bool, "restartCount": int, "state": _STATE}
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods", "observedGeneration")
_JOB_SPEC: Schema = {"parallelism": int, "completions": int, "backoffLimit": int, "suspend": bool}
_JOB_SPEC |= {"activeDeadlineSeconds": int, "podReplacementPolicy": str}
_ON_CODES = {"!operator": str, "values": [int], "containerName": str}
_RULE = {"!action": str, "onPodConditions": [{"!type": str, "status": str}], "onExitCodes": _ON_CODES}
_JOB_SPEC |= {"podFailurePolicy": {"rules": [_RULE]}}
_NETWORK_RULE = {"ports": [{"port": INT_OR_PERCENT, "endPort": int, "protocol": str}], "from": [{}], "to": [{}]}
SHAPES: dict[str, Schema] = {
    "nodes": {
        "spec": {"unschedulable": bool, "providerID": str, "taints": [_TAINT]},
        "status": {"capacity": QUANTITIES, "allocatable": QUANTITIES, "addresses": [_ADDRESS], "nodeInfo": {}}
        | _CONDITIONS,
    },
    "pods": {
        "spec": _POD_SPEC,
        "status": {"phase": str, "startTime": TIME}
        | {key: [_CONTAINER_STATUS] for key in ("containerStatuses", "initContainerStatuses")}
        | _CONDITIONS,
    },
    "configmaps": {"data": TEXTS},
    "secrets": {"type": str, "data": ENCODED, "stringData": TEXTS},
    "networkpolicies": {
        "spec": {"podSelector": _SELECTOR, "policyTypes": [str], "ingress": [_NETWORK_RULE], "egress": [_NETWORK_RULE]}
    },
    "serviceaccounts": {"automountServiceAccountToken": bool, "secrets": [{}], "imagePullSecrets": [{}]},
    **dict.fromkeys(("roles", "clusterroles"), rbac_rules.ROLE),
    **dict.fromkeys(("rolebindings", "clusterrolebindings"), rbac_rules.BINDING),
    "resourcequotas": {"spec": {"hard": QUANTITIES}, "status": {"hard": QUANTITIES, "used": QUANTITIES}},
    "leases": {"spec": {"holderIdentity": str, "leaseDurationSeconds": int, "renewTime": TIME, "acquireTime": TIME}},
    "deployments": _WORKLOAD,
    "replicasets": _WORKLOAD,
    "statefulsets": _WORKLOAD,
    "daemonsets": _WORKLOAD,
    "jobs": {
        "spec": _JOB_SPEC | {"selector": _SELECTOR, "template": _TEMPLATE},
        "status": {"startTime": TIME, "completionTime": TIME, "succeeded": int, "failed": int} | _CONDITIONS,
    },
    "persistentvolumeclaims": {"spec": _CLAIM, "status": {"phase": str, "capacity": QUANTITIES}},
    "volumeattachments": {
        "spec": {"!attacher": str, "!nodeName": str, "source": {"persistentVolumeName": str}},
        "status": {"attached": bool},
    },
    "machines": {
        "spec": {"clusterName": str, "providerID": str},
        "status": {"phase": str, "nodeRef": {"name": str}},
    },
    "events": {
        **dict.fromkeys(("firstTimestamp", "lastTimestamp", "eventTime"), TIME),
        **{field: {} for field in ("involvedObject", "source", "series")},
        **{"count": int, "message": str},
    },
    "poddisruptionbudgets": {
        "spec": {"minAvailable": INT_OR_PERCENT, "maxUnavailable": INT_OR_PERCENT, "selector": _SELECTOR}
        | {"unhealthyPodEvictionPolicy": str},
        "status": {"disruptedPods": TIMES} | dict.fromkeys(_COUNTS, int) | _CONDITIONS,
    },
}
_TEMPLATE_CONTAINERS = "spec.template.spec.containers"
#: Measured: kube-apiserver 1.36 answers 422 to a pod without containers, and names the field.
_REQUIRED = {
    "pods": ("spec.containers",),
    "deployments": ("spec.selector", _TEMPLATE_CONTAINERS),
    "replicasets": ("spec.selector", _TEMPLATE_CONTAINERS),
    "statefulsets": ("spec.selector", _TEMPLATE_CONTAINERS),
    "daemonsets": ("spec.selector", _TEMPLATE_CONTAINERS),
    "jobs": (_TEMPLATE_CONTAINERS,),
    "volumeattachments": ("spec",),
}


def check(kind: Kind, item: Object, before: Object | None = None) -> None:
    """Refuse what the real server could not decode or would not accept."""
    check_types(kind, item, before)
    causes = _causes(kind, item)
    if causes:
        raise invalid(kind, item["metadata"].get("name", ""), causes)


def canonical(kind: Kind, item: Object, before: Object | None = None) -> Object:
    """Return a checked object as the server stores it. Parts shared with `before` were stored in this form."""
    touched = {key: value for key, value in item.items() if before is None or value is not before.get(key)}
    written: Object = canonical_lists(touched, SHAPES.get(kind.plural))
    return item | written


def check_types(kind: Kind, item: Object, before: Object | None = None) -> None:
    """Refuse what cannot be decoded. Parts shared with `before`, a stored object, were checked when they
    were stored.
    """
    if before:
        item = {key: value for key, value in item.items() if value is not before.get(key)}
    _check_shape(item, {"metadata": _METADATA, "spec": {}, "status": {}}, "")
    _check_shape(item, SHAPES.get(kind.plural, {}), "")


def _check_shape(value: Any, schema: Schema, path: str) -> None:
    if value is None:
        return
    if isinstance(schema, dict):
        _expect(isinstance(value, dict), value, path)
        for name, inner in schema.items():
            field = name.lstrip("!")
            _expect(field == name or value.get(field) is not None, value, f"{path}.{field}")
            _check_shape(value.get(field), inner, f"{path}.{field}")
    elif isinstance(schema, list):
        _expect(isinstance(value, list) and None not in value, value, path)
        for item in value:
            _check_shape(item, schema[0], path)
    elif schema == TEXTS:
        _expect(isinstance(value, dict) and all(isinstance(text, str) for text in value.values()), value, path)
    elif schema == ENCODED:
        _expect(isinstance(value, dict) and all(isinstance(text, str) for text in value.values()), value, path)
        _check_encoded(value, path)
    elif schema == QUANTITIES:
        _expect(are_quantities(value), value, path)
    elif schema == TIMES:
        _expect(isinstance(value, dict) and all(map(_is_time, value.values())), value, path)
    elif schema == TIME:
        _expect(_is_time(value), value, path)
    elif schema == INT_OR_PERCENT:
        _expect(_is_int(value) or isinstance(value, str), value, path)
    else:
        _expect(_is_int(value) if schema is int else isinstance(value, schema), value, path)


def _check_encoded(values: dict[str, str], path: str) -> None:
    if not all(map(secrets.is_encoded, values.values())):
        # Go: encoding/base64. The position of the fault is left out.
        raise ApiError(400, "BadRequest", f"{path[1:]}: illegal base64 data")


def _is_int(value: Any) -> bool:
    # Kubernetes: int32 in most of these fields.
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _is_time(value: Any) -> bool:
    try:
        return bool(from_timestamp(value))
    except (ValueError, AttributeError, OverflowError):
        return False


def _expect(fits: bool, value: Any, path: str) -> None:
    if not fits:
        found = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")
        # Measured: kube-apiserver 1.36 answers 400 to a field of a wrong type in a POST, 422 after a patch.
        raise ApiError(400, "BadRequest", f"json: cannot unmarshal {found} into Go struct field {path[1:]}")


def _causes(kind: Kind, item: Object) -> list[tuple[str, str, str]]:
    metadata = item["metadata"]
    causes = []
    name = metadata.get("name") or ""
    # Measured: kube-apiserver 1.36 answers 422 to a missing name, a bad name and a bad label.
    if not name:
        causes.append(("metadata.name", "FieldValueRequired", "Required value: name or generateName is required"))
    elif kind.any_name:
        causes += rbac_rules.name_causes(name)
    elif len(name) > 253 or not _NAME.fullmatch(name):
        causes.append(("metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": {_NAME_RULE}'))
    for key, value in (metadata.get("labels") or {}).items():
        causes += _label_causes(key, value)
    for path in _REQUIRED.get(kind.plural, ()):
        if not at(item, path):
            causes.append((path, "FieldValueRequired", "Required value"))
    # Kubernetes: a workload whose selector misses its own pods would create pods without end.
    if kind.plural in _WITH_SELECTOR and not causes:
        causes += _selector_causes(item)
    for path in _NOT_NEGATIVE:
        count = at(item, path)
        if isinstance(count, int) and (count < 0 or (count > MAX_PODS and path in _POD_COUNTS)):
            too_many = f"must be less than or equal to {MAX_PODS} in this simulator"
            message = int_or_percent.NOT_NEGATIVE if count < 0 else too_many
            causes.append((path, "FieldValueInvalid", f"Invalid value: {count}: {message}"))
    amounts = negative_amounts(item, SHAPES.get(kind.plural))
    own = (*rbac_rules.causes(kind, item), *pod_specs.causes(kind, item), *events.causes(kind, item))
    return [*causes, *int_or_percent.causes(kind, item), *own, *amounts]


def _selector_causes(item: Object) -> list[tuple[str, str, str]]:
    labels = labels_of(at(item, "spec.template"))
    if selector_test(at(item, "spec.selector"))(labels):
        return []
    encoded = json.dumps(labels, separators=(",", ":"), sort_keys=True)
    message = f"Invalid value: {encoded}: `selector` does not match template `labels`"
    return [("spec.template.metadata.labels", "FieldValueInvalid", message)]


def _label_causes(key: str, value: str) -> list[tuple[str, str, str]]:
    field, reason = "metadata.labels", "FieldValueInvalid"
    causes = []
    if not _LABEL_NAME.fullmatch(key.rpartition("/")[2]) or len(key.rpartition("/")[2]) > 63:
        causes.append((field, reason, f'Invalid value: "{key}": {_LABEL_NAME_RULE}'))
    if len(value) > 63:
        causes.append((field, reason, f'Invalid value: "{value}": must be no more than 63 bytes'))
    elif not _LABEL_VALUE.fullmatch(value):
        causes.append((field, reason, f'Invalid value: "{value}": {_LABEL_VALUE_RULE}'))
    return causes


_WITH_SELECTOR = ("deployments", "replicasets", "statefulsets", "daemonsets")
# Far more pods than a rehearsal needs in one workload. A typing error must not stop the world.
MAX_PODS = 20_000
_POD_COUNTS = ("spec.replicas", "spec.parallelism")
_NOT_NEGATIVE = (*_POD_COUNTS, "spec.completions", "spec.backoffLimit", "spec.activeDeadlineSeconds")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

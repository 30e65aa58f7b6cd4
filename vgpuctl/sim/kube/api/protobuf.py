"""Decodes the protobuf bodies of `kubectl create` into plain JSON.

The field numbers are those of k8s.io/api's .proto files, as far as kubectl's own commands use them. A protobuf body
names also the empty fields that Go cannot leave out; these are dropped here. A field with content that is in no table
is refused.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from vgpuctl.sim.kube.api.errors import ApiError, bad_request
from vgpuctl.sim.kube.api.request import Request
from vgpuctl.sim.kube.objects import Object

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
#: Kubernetes: the prefix of each protobuf body.
_MAGIC = b"k8s\0"
_MAX_DEPTH = 30
Value = int | bytes
Reader = Callable[[Value, int], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message. `keep_empty`: for fields that Go can leave out, an empty value means something."""

    name: str
    read: Reader
    many: bool = False
    map: bool = False
    keep_empty: bool = False


Fields = dict[int, Field]


def is_protobuf(request: Request) -> bool:
    return request.content_type.split(";")[0].strip() == MEDIA_TYPE


def document_of(request: Request) -> Any:
    """Return the body of a request, which is JSON or protobuf."""
    return decoded(request.body) if is_protobuf(request) else request.json()


def decoded(body: bytes) -> Object:
    if not body.startswith(_MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        names = {number: _text(value, 0) for number, value in _fields(_bytes(envelope[1]))}
        kind = names.get(2, "")
        if kind not in _KINDS:
            raise _unsupported(f"a {kind}")
        item: Object = _message(_KINDS[kind])(envelope.get(2, b""), 0)
        return item | {"apiVersion": names.get(1, ""), "kind": kind}
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise bad_request(f"the protobuf body cannot be read: {error}") from None


def _unsupported(what: str) -> ApiError:
    message = (
        f"this simulator does not read {what} from a protobuf body - accepted media types include: application/json"
    )
    return ApiError(415, "UnsupportedMediaType", message)


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif tag & 7 == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("it ends too early")
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {tag & 7}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        value |= (data[at] & 0x7F) << shift
        if not data[at] & 0x80:
            return value, at + 1
        at += 1
    raise ValueError("a number does not end")


def _bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise TypeError("a number where text is expected")
    return value


def _text(value: Value, depth: int) -> str:
    return _bytes(value).decode()


def _encoded(value: Value, depth: int) -> str:
    return base64.b64encode(_bytes(value)).decode()


def _number(value: Value, depth: int) -> int:
    if not isinstance(value, int):
        raise TypeError("text where a number is expected")
    return value - (1 << 64) if value >> 63 else value


def _flag(value: Value, depth: int) -> bool:
    return bool(_number(value, depth))


def _int_or_text(value: Value, depth: int) -> int | str:
    parts = dict(_fields(_bytes(value)))
    return _text(parts.get(3, b""), depth) if parts.get(1) else _number(parts.get(2, 0), depth)


def _quantity_text(value: Value, depth: int) -> str:
    return _text(dict(_fields(_bytes(value))).get(1, b"0"), depth)


def _ignored(value: Value, depth: int) -> None:
    """Drop a field that only the server sets. A real server ignores a client's value too."""


def _message(fields: Fields) -> Reader:
    def read(value: Value, depth: int) -> Object:
        if depth > _MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        result: Object = {}
        for number, inner in _fields(_bytes(value)):
            if number in fields:
                _set_field(result, fields[number], inner, depth + 1)
            elif inner:
                raise _unsupported(f"field {number} beside {', '.join(each.name for each in fields.values())}")
        return result

    return read


def _set_field(result: Object, known: Field, value: Value, depth: int) -> None:
    if known.map:
        entry = dict(_fields(_bytes(value)))
        result.setdefault(known.name, {})[_text(entry.get(1, b""), depth)] = known.read(entry.get(2, b""), depth)
        return
    read = known.read(value, depth)
    if known.many:
        result.setdefault(known.name, []).append(read)
    elif read or (known.keep_empty and read is not None):
        result[known.name] = read


def _texts(**names: int) -> Fields:
    return {number: Field(name, _text) for name, number in names.items()}


def _counts(**names: int) -> Fields:
    return {number: Field(name, _number, keep_empty=True) for name, number in names.items()}


def _lists(**names: int) -> Fields:
    return {number: Field(name, _text, many=True) for name, number in names.items()}


def _maps(**names: int) -> Fields:
    return {number: Field(name, _text, map=True) for name, number in names.items()}


_OWNER = _texts(apiVersion=5, kind=1, name=3, uid=4) | {
    6: Field("controller", _flag),
    7: Field("blockOwnerDeletion", _flag),
}
_METADATA = {
    **_texts(name=1, generateName=2, namespace=3, uid=5, resourceVersion=6),
    **{number: Field("", _ignored) for number in (4, 7, 8, 9, 10, 17)},
    **_maps(labels=11, annotations=12),
    13: Field("ownerReferences", _message(_OWNER), many=True),
    **_lists(finalizers=14),
}
_EXPRESSION = _texts(key=1, operator=2) | _lists(values=3)
_SELECTOR = _maps(matchLabels=1) | {2: Field("matchExpressions", _message(_EXPRESSION), many=True)}
_RESOURCES = {1: Field("limits", _quantity_text, map=True), 2: Field("requests", _quantity_text, map=True)}
_PORT = _texts(name=1, protocol=4, hostIP=5) | {2: Field("hostPort", _number), 3: Field("containerPort", _number)}
_CONTAINER = {
    **_texts(name=1, image=2, workingDir=5, terminationMessagePath=13, imagePullPolicy=14, terminationMessagePolicy=20),
    **_lists(command=3, args=4),
    6: Field("ports", _message(_PORT), many=True),
    7: Field("env", _message(_texts(name=1, value=2)), many=True),
    8: Field("resources", _message(_RESOURCES)),
}
_TOLERATION = _texts(key=1, operator=2, value=3, effect=4) | _counts(tolerationSeconds=5)
_POD = {
    **_texts(restartPolicy=3, dnsPolicy=6, serviceAccountName=8, serviceAccount=9, nodeName=10, schedulerName=19),
    **_texts(hostname=16, subdomain=17, priorityClassName=24),
    **_counts(terminationGracePeriodSeconds=4, activeDeadlineSeconds=5),
    **_maps(nodeSelector=7),
    2: Field("containers", _message(_CONTAINER), many=True),
    14: Field("securityContext", _message({})),
    22: Field("tolerations", _message(_TOLERATION), many=True),
}
_META = {1: Field("metadata", _message(_METADATA), keep_empty=True)}
_TEMPLATE = _META | {2: Field("spec", _message(_POD))}
_ROLLING = {
    1: Field("maxUnavailable", _int_or_text, keep_empty=True),
    2: Field("maxSurge", _int_or_text, keep_empty=True),
}
_STRATEGY = _texts(type=1) | {2: Field("rollingUpdate", _message(_ROLLING))}
_DEPLOYMENT = {
    **_counts(replicas=1, revisionHistoryLimit=6, progressDeadlineSeconds=9),
    2: Field("selector", _message(_SELECTOR), keep_empty=True),
    3: Field("template", _message(_TEMPLATE)),
    4: Field("strategy", _message(_STRATEGY)),
    5: Field("minReadySeconds", _number),
    7: Field("paused", _flag),
}
_JOB = {
    **_counts(parallelism=1, completions=2, activeDeadlineSeconds=3, backoffLimit=7, ttlSecondsAfterFinished=8),
    **_texts(completionMode=9, podReplacementPolicy=14),
    4: Field("selector", _message(_SELECTOR), keep_empty=True),
    6: Field("template", _message(_TEMPLATE)),
    10: Field("suspend", _flag),
}
_BUDGET = {
    1: Field("minAvailable", _int_or_text, keep_empty=True),
    2: Field("selector", _message(_SELECTOR), keep_empty=True),
    3: Field("maxUnavailable", _int_or_text, keep_empty=True),
    **_texts(unhealthyPodEvictionPolicy=4),
}
_ATTRIBUTES = _texts(namespace=1, verb=2, group=3, version=4, resource=5, subresource=6, name=7)
_QUESTION = {
    1: Field("resourceAttributes", _message(_ATTRIBUTES)),
    2: Field("nonResourceAttributes", _message(_texts(path=1, verb=2))),
}
_ANOTHERS_QUESTION = _QUESTION | _texts(user=3) | _lists(groups=4)
_RULE = _lists(verbs=1, apiGroups=2, resources=3, resourceNames=4, nonResourceURLs=5)
_ROLE = _META | {2: Field("rules", _message(_RULE), many=True)}
_BINDING = {
    **_META,
    2: Field("subjects", _message(_texts(kind=1, apiGroup=2, name=3, namespace=4)), many=True),
    3: Field("roleRef", _message(_texts(apiGroup=1, kind=2, name=3))),
}
_TOKEN = _lists(audiences=1) | _counts(expirationSeconds=4) | {3: Field("boundObjectRef", _message(_texts(kind=1)))}


def _object_of(spec: Fields) -> Fields:
    return _META | {2: Field("spec", _message(spec)), 3: Field("", _ignored)}


_KINDS: dict[str, Fields] = {
    "ConfigMap": _META | _maps(data=2),
    "Secret": _META | {2: Field("data", _encoded, map=True)} | _texts(type=3) | _maps(stringData=4),
    "Namespace": _object_of(_lists(finalizers=1)),
    "Deployment": _object_of(_DEPLOYMENT),
    "Job": _object_of(_JOB),
    "PodDisruptionBudget": _object_of(_BUDGET),
    "SelfSubjectAccessReview": _object_of(_QUESTION),
    "SubjectAccessReview": _object_of(_ANOTHERS_QUESTION),
    "SelfSubjectRulesReview": _object_of(_texts(namespace=1)),
    "SelfSubjectReview": _META | {2: Field("", _ignored)},
    "ServiceAccount": _META,
    "TokenRequest": _object_of(_TOKEN),
    "Role": _ROLE,
    "ClusterRole": _ROLE,
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
}

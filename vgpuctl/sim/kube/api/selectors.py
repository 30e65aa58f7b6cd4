"""Label and field selectors: parsed once, then applied to many objects."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from vgpuctl.sim.kube.api.errors import bad_request
from vgpuctl.sim.kube.api.kinds import Kind
from vgpuctl.sim.kube.objects import Object, at, labels_of

Labels = dict[str, str]
LabelTest = Callable[[Labels], bool]
_KEY = r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_EQUALS = re.compile(rf"(?P<key>{_KEY})\s*(?P<operator>==|=|!=)\s*(?P<value>{_VALUE})")
_SET = re.compile(rf"(?P<key>{_KEY})\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EXISTS = re.compile(rf"(?P<not>!?)\s*(?P<key>{_KEY})")
_BOOLEAN_FIELDS = ("spec.unschedulable", "spec.hostNetwork")


def label_test(text: str) -> LabelTest:
    """Return the test for what `-l` takes: `a=b,c!=d,e in (f,g),h,!i`."""
    tests = [_requirement(part.strip()) for part in _split(text)] if text.strip() else []
    return lambda labels: all(test(labels) for test in tests)


def selector_test(selector: Object | None) -> LabelTest:
    """Return the test for a workload's or budget's `selector`. An empty selector matches all; a missing one matches
    nothing.
    """
    # Kubernetes: the difference between {} and nothing.
    if selector is None:
        return lambda labels: False
    wanted = selector.get("matchLabels") or {}
    tests = [expression_test(expression) for expression in selector.get("matchExpressions") or []]
    return lambda labels: wanted.items() <= labels.items() and all(test(labels) for test in tests)


def selector_text(selector: Object | None) -> str:
    pairs = sorted(((selector or {}).get("matchLabels") or {}).items())
    return ",".join(f"{key}={value}" for key, value in pairs) or "<none>"


def field_terms(kind: Kind, text: str) -> list[tuple[str, bool, str]]:
    """Return what `--field-selector` takes, as (field, equal?, value)."""
    terms = []
    for part in filter(None, text.split(",")):
        found = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", part)
        if found is None:
            raise bad_request(f"invalid field selector: {text!r}: can't understand '{part}'")
        field, operator, value = found.groups()
        # Measured: kube-apiserver 1.36 answers 400 to a field that the kind does not offer.
        if field not in ("metadata.name", "metadata.namespace", *kind.fields):
            raise bad_request(f"field label not supported: {field}")
        terms.append((field, operator != "!=", value))
    return terms


def field_test(kind: Kind, text: str) -> Callable[[Object], bool]:
    terms = field_terms(kind, text)
    return lambda item: all((_field(item, field) == value) is equal for field, equal, value in terms)


def object_label_test(text: str) -> Callable[[Object], bool]:
    test = label_test(text)
    return lambda item: test(labels_of(item))


def _field(item: Object, field: str) -> str:
    value = at(item, field.replace("regarding.", "involvedObject."))
    if field in _BOOLEAN_FIELDS:
        return "true" if value else "false"
    return "" if value is None else str(value)


def _split(text: str) -> list[str]:
    return re.split(r",(?![^(]*\))", text)


def _requirement(part: str) -> LabelTest:
    if found := _EQUALS.fullmatch(part):
        key, value = found["key"], found["value"]
        if found["operator"] == "!=":
            # Kubernetes: `!=` and `notin` match objects without the label, too.
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _SET.fullmatch(part):
        values = [value.strip() for value in found["values"].split(",")]
        return expression_test({"key": found["key"], "operator": found["operator"], "values": values})
    if found := _EXISTS.fullmatch(part):
        return expression_test({"key": found["key"], "operator": "doesnotexist" if found["not"] else "exists"})
    raise bad_request(f"unable to parse requirement: found '{part}', expected: identifier")


def expression_test(expression: Object) -> LabelTest:
    """Return the test for one requirement of a label selector or of a node affinity."""
    key, values = expression["key"], expression.get("values") or []
    match str(expression["operator"]).lower():
        case "in":
            return lambda labels: labels.get(key) in values
        case "notin":
            return lambda labels: labels.get(key) not in values
        case "exists":
            return lambda labels: key in labels
        case "gt":
            return lambda labels: _number(labels.get(key)) > _number(values[0] if values else None)
        case "lt":
            return lambda labels: _number(labels.get(key)) < _number(values[0] if values else None)
        case _:
            return lambda labels: key not in labels


def _number(text: str | None) -> float:
    """Return NaN for what is not a number: it is neither greater nor less than anything."""
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,18}", text) else math.nan

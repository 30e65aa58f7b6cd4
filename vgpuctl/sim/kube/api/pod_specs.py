"""What a pod, or a workload's template of pods, may ask for. What is not simulated is refused by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vgpuctl.sim.kube.api.kinds import Kind
from vgpuctl.sim.kube.objects import Object, at

Cause = tuple[str, str, str]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_QUALIFIED = re.compile(r"([-a-z0-9.]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_WORKLOADS = ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs")
#: Kubernetes: what the admission plugin Priority gives a pod without a class.
_NO_PRIORITY: dict[str, tuple[Any, ...]] = {
    "priorityClassName": (None, ""),
    "priority": (None, 0),
    "preemptionPolicy": (None, "PreemptLowerPriority"),
}
_NAME_RULE = "name part must consist of alphanumeric characters, '-', '_' or '.'"
_LONGEST_DEADLINE_S = 2**31 - 1


def causes(kind: Kind, item: Object) -> Iterator[Cause]:
    """Return field, reason and message of all that is wrong with a pod's spec, or with that of a template."""
    if kind.plural == "pods":
        yield from _causes(item.get("spec") or {}, "spec")
        yield from _bound_causes(item.get("spec") or {})
    elif kind.plural in _WORKLOADS:
        yield from _causes(at(item, "spec.template.spec") or {}, "spec.template.spec")


def _causes(spec: Object, path: str) -> Iterator[Cause]:
    yield from _not_simulated(spec, path)
    # Measured: kube-apiserver 1.36 refuses a deadline of 0.
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None and deadline_s < 1:
        message = f"Invalid value: {deadline_s}: must be between 1 and {_LONGEST_DEADLINE_S}, inclusive"
        yield f"{path}.activeDeadlineSeconds", "FieldValueInvalid", message
    yield from _names(spec, path)


def _not_simulated(spec: Object, path: str) -> Iterator[Cause]:
    for kind in ("podAffinity", "podAntiAffinity"):
        if at(spec, f"affinity.{kind}.{_REQUIRED}"):
            yield _refused(f"{path}.affinity.{kind}.{_REQUIRED}", "required affinity between pods")
    for number, spread in enumerate(spec.get("topologySpreadConstraints") or []):
        if spread.get("whenUnsatisfiable") == "DoNotSchedule":
            field = f"{path}.topologySpreadConstraints[{number}].whenUnsatisfiable"
            yield _refused(field, "a spread with DoNotSchedule")
    for field, usual in _NO_PRIORITY.items():
        if spec.get(field) not in usual:
            yield _refused(f"{path}.{field}", "preemption")
    if spec.get("resourceClaims"):
        yield _refused(f"{path}.resourceClaims", "dynamic resource allocation")


def _refused(field: str, what: str) -> Cause:
    return field, "FieldValueForbidden", f"Forbidden: this simulator does not simulate {what}"


def _names(spec: Object, path: str) -> Iterator[Cause]:
    """Return what is wrong with the names of gates and of containers."""
    gates = [gate.get("name") or "" for gate in spec.get("schedulingGates") or []]
    for number, name in enumerate(gates):
        if not _QUALIFIED.fullmatch(name):
            message = f'Invalid value: "{name}": {_NAME_RULE}'
            yield f"{path}.schedulingGates[{number}]", "FieldValueInvalid", message
        elif name in gates[:number]:
            yield f"{path}.schedulingGates[{number}]", "FieldValueDuplicate", f'Duplicate value: "{name}"'
    used = {container["name"] for container in spec.get("containers") or []}
    for number, container in enumerate(spec.get("initContainers") or []):
        if container["name"] in used:
            message = f'Duplicate value: "{container["name"]}"'
            yield f"{path}.initContainers[{number}].name", "FieldValueDuplicate", message
        used.add(container["name"])


def _bound_causes(spec: Object) -> Iterator[Cause]:
    # Measured: kube-apiserver 1.36 refuses a node for a pod that still has gates.
    if spec.get("nodeName") and spec.get("schedulingGates"):
        message = "Forbidden: cannot be set until all schedulingGates have been cleared"
        yield "spec.nodeName", "FieldValueForbidden", message

"""What the API server says about workloads, and about what else decides their size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vgpuctl.basics.bounded import whole
from vgpuctl.model.selectors import Selector
from vgpuctl.model.workloads import MOST_REPLICAS, Workload, read_scaled

Object = Mapping[str, Any]

#: Field managers of programs that write what Git declares, with their usual names.
_DECLARING = {
    "argocd-controller": "Argo CD",
    "argocd-application-controller": "Argo CD",
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
    "fleetagent": "Fleet",
    "configsync.gke.io": "Config Sync",
}
#: KEDA labels the autoscaler that it makes for a ScaledObject.
_KEDA_LABEL = "scaledobject.keda.sh/name"

_OUT_OF_GIT = (
    "Remove replicas from its manifest in Git, or let Git's program ignore the field, or remove it from scale:."
)
_OUT_OF_HPA = "Give it a fixed size instead of an autoscaler, or remove it from scale:. Then its pods are evicted."
_BY_KEDA = "Let KEDA scale it, with a cron trigger for the shift and minReplicaCount: 0, and remove it from scale:."


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """A HorizontalPodAutoscaler. `keda`: the ScaledObject that it was made for."""

    name: str
    namespace: str
    kind: str
    target: str
    keda: str = ""


def deployment(raw: Object) -> Workload:
    return _workload("deployment", raw)


def stateful_set(raw: Object) -> Workload:
    return _workload("statefulset", raw)


def _workload(kind: str, raw: Object) -> Workload:
    meta, spec = raw["metadata"], raw.get("spec") or {}
    labels, replicas = meta.get("labels") or {}, spec.get("replicas")
    program = next(_declaring(meta), "")
    return Workload(
        kind=kind,
        namespace=meta["namespace"],
        name=meta["name"],
        version=meta["resourceVersion"],
        # Kubernetes: spec.replicas defaults to 1.
        replicas=1 if replicas is None else whole(replicas, "spec.replicas", most=MOST_REPLICAS),
        labels=labels,
        covers=Selector.of(spec.get("selector")),
        scaled=read_scaled(labels, meta.get("annotations") or {}),
        decided_by=f"{program} sets its replicas" if program else "",
        way_out=_OUT_OF_GIT if program else "",
    )


def _declaring(meta: Object) -> Iterator[str]:
    """Yield the managed-fields owners of spec.replicas that are programs and would write it again."""
    # Decision 0013: such a program writes replicas again within minutes.
    for entry in meta.get("managedFields") or ():
        fields = entry.get("fieldsV1") or {}
        if entry.get("manager") in _DECLARING and "f:replicas" in (fields.get("f:spec") or {}):
            yield _DECLARING[entry["manager"]]


def autoscaler(raw: Object) -> Autoscaler:
    meta, target = raw["metadata"], (raw.get("spec") or {}).get("scaleTargetRef") or {}
    return Autoscaler(
        name=meta["name"],
        namespace=meta["namespace"],
        kind=str(target.get("kind") or "").lower(),
        target=str(target.get("name") or ""),
        keda=(meta.get("labels") or {}).get(_KEDA_LABEL, ""),
    )


def with_deciders(workloads: Iterable[Workload], autoscalers: Iterable[Autoscaler]) -> Iterator[Workload]:
    """Yield the workloads, each with what decides its size besides vgpuctl."""
    # Decision 0013: refused, not fought. One rule for all autoscalers is easier to trust.
    by_target = {(each.namespace, each.kind, each.target): each for each in autoscalers}
    for workload in workloads:
        found = by_target.get((workload.namespace, workload.kind, workload.name))
        if found is None:
            yield workload
        elif found.keda:
            yield replace(workload, decided_by=f"KEDA's ScaledObject {found.keda} decides its size", way_out=_BY_KEDA)
        else:
            reason = f"the HorizontalPodAutoscaler {found.name} decides its size"
            yield replace(workload, decided_by=reason, way_out=_OUT_OF_HPA)

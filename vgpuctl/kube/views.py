"""What the API server says of nodes, pods and budgets, as our own frozen data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vgpuctl.model.fleet import GPU_RESOURCE, Budget, Node, Pod, Selector
from vgpuctl.model.record import read_record

Object = Mapping[str, Any]

_MIRROR = "kubernetes.io/config.mirror"


def pod(raw: Object) -> Pod:
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    owner = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), None)
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        node=spec.get("nodeName"),
        phase=status.get("phase", "Pending"),
        ready=_condition(status, "Ready").get("status") == "True",
        terminating="deletionTimestamp" in meta,
        owner=f"{owner['kind']}/{owner['name']}" if owner else None,
        mirror=_MIRROR in (meta.get("annotations") or {}),
        empty_dir=any("emptyDir" in volume for volume in spec.get("volumes") or ()),
        labels=meta.get("labels") or {},
        selector=spec.get("nodeSelector") or {},
    )


def budget(raw: Object) -> Budget:
    return Budget(
        namespace=raw["metadata"]["namespace"],
        name=raw["metadata"]["name"],
        allowed=(raw.get("status") or {}).get("disruptionsAllowed", 0),
        covers=Selector.of(raw["spec"].get("selector")),
        version=raw["metadata"]["resourceVersion"],
    )


def node(raw: Object, lease: Object | None, pods: Iterable[Pod]) -> Node:
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    ready = _condition(status, "Ready")
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    return Node(
        name=meta["name"],
        version=meta["resourceVersion"],
        ready=ready.get("status") == "True",
        unschedulable=bool(spec.get("unschedulable")),
        labels=labels,
        record=read_record(labels, annotations),
        lease_renewed=(lease or {}).get("spec", {}).get("renewTime"),
        heartbeat=ready.get("lastHeartbeatTime"),
        taints=tuple(taint["key"] for taint in spec.get("taints") or ()),
        gpus=int((status.get("allocatable") or {}).get(GPU_RESOURCE, 0)),
        pods=tuple(pods),
    )


def identities(raw: Object) -> tuple[str, str]:
    """What tells which VM a node is: its provider's id and its system's uuid."""
    provider = str((raw.get("spec") or {}).get("providerID") or "")
    system = str(((raw.get("status") or {}).get("nodeInfo") or {}).get("systemUUID") or "")
    return provider.removeprefix("vsphere://").lower(), system.lower()


def _condition(status: Object, kind: str) -> Object:
    return next((c for c in status.get("conditions") or () if c.get("type") == kind), {})

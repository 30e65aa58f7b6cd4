"""Tables as the server makes them for kubectl: one row for each object, columns by kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vgpuctl.sim.kube.api import cells
from vgpuctl.sim.kube.api.cells import Cell
from vgpuctl.sim.kube.api.kinds import Kind
from vgpuctl.sim.kube.objects import Object

NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. kubectl shows `wide` columns only with `-o wide`."""

    name: str
    cell: Cell
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The time for which ages are computed, and how much of each object goes with its row."""

    now: datetime
    include: str = "Metadata"


def table(kind: Kind, items: list[Object], metadata: Object, options: TableOptions) -> Object:
    columns = COLUMNS.get(kind.plural, _PLAIN)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [_row(columns, item, options) for item in items],
    }


def _definition(column: Column) -> Object:
    form = "name" if column.name == "Name" else ""
    priority = 1 if column.wide else 0
    return {"name": column.name, "type": column.type, "format": form, "description": "", "priority": priority}


def _row(columns: tuple[Column, ...], item: Object, options: TableOptions) -> Object:
    row: Object = {"cells": [column.cell(item, options.now) for column in columns]}
    # Kubernetes: `includeObject` says how much of each object comes with its row; by default its metadata.
    if options.include == "Object":
        row["object"] = item
    elif options.include != "None":
        metadata = item["metadata"]
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return row


_NAME, _AGE = Column("Name", cells.name), Column("Age", cells.age)
_ROLE = (_NAME, Column("Created At", cells.field("metadata.creationTimestamp", ""), "date"))
_BINDING = (
    _NAME,
    Column("Role", cells.bound_role),
    _AGE,
    *(Column(f"{kind}s", cells.subjects(kind), wide=True) for kind in ("User", "Group", "ServiceAccount")),
)
_PLAIN = (_NAME, _AGE)
_TEMPLATE = (
    Column("Containers", cells.containers, wide=True),
    Column("Images", cells.images, wide=True),
    Column("Selector", cells.selector, wide=True),
)


def _text(path: str, default: str = NONE) -> Cell:
    return cells.field(path, default)


def _count(path: str) -> Cell:
    return cells.field(path, 0)


_EVENTS = (
    Column("Last Seen", cells.last_seen),
    Column("Type", _text("type", "")),
    Column("Reason", _text("reason", "")),
    Column("Object", cells.involved),
    Column("Subobject", _text("involvedObject.fieldPath", ""), wide=True),
    Column("Source", cells.source, wide=True),
    Column("Message", cells.message),
    Column("First Seen", cells.first_seen, wide=True),
    Column("Count", cells.field("count", 1), wide=True),
    Column("Name", cells.name, wide=True),
)

#: Measured: the documentation's kubectl commands print the same with kube-apiserver 1.36.
COLUMNS: dict[str, tuple[Column, ...]] = {
    "namespaces": (_NAME, Column("Status", _text("status.phase")), _AGE),
    "nodes": (
        _NAME,
        Column("Status", cells.node_status),
        Column("Roles", cells.node_roles),
        _AGE,
        Column("Version", _text("status.nodeInfo.kubeletVersion")),
        Column("Internal-IP", cells.internal_address, wide=True),
        Column("External-IP", lambda item, now: NONE, wide=True),
        Column("OS-Image", _text("status.nodeInfo.osImage"), wide=True),
        Column("Kernel-Version", cells.kernel, wide=True),
        Column("Container-Runtime", _text("status.nodeInfo.containerRuntimeVersion"), wide=True),
    ),
    "pods": (
        _NAME,
        Column("Ready", cells.pod_ready),
        Column("Status", cells.pod_status),
        Column("Restarts", cells.pod_restarts),
        _AGE,
        Column("IP", _text("status.podIP"), wide=True),
        Column("Node", _text("spec.nodeName"), wide=True),
        Column("Nominated Node", _text("status.nominatedNodeName"), wide=True),
        Column("Readiness Gates", lambda item, now: NONE, wide=True),
    ),
    "events": _EVENTS,
    "serviceaccounts": (_NAME, Column("Secrets", cells.secret_count), _AGE),
    **dict.fromkeys(("roles", "clusterroles"), _ROLE),
    **dict.fromkeys(("rolebindings", "clusterrolebindings"), _BINDING),
    "configmaps": (_NAME, Column("Data", cells.data_count), _AGE),
    "secrets": (_NAME, Column("Type", _text("type", "")), Column("Data", cells.data_count), _AGE),
    "networkpolicies": (_NAME, Column("Pod-Selector", cells.pod_selector), _AGE),
    "persistentvolumeclaims": (
        _NAME,
        Column("Status", _text("status.phase", "")),
        Column("Volume", _text("spec.volumeName", "")),
        Column("Capacity", _text("status.capacity.storage", "")),
        Column("Access Modes", lambda item, now: ""),
        Column("StorageClass", _text("spec.storageClassName", "")),
        Column("VolumeAttributesClass", _text("spec.volumeAttributesClassName", "<unset>")),
        _AGE,
        Column("VolumeMode", _text("spec.volumeMode", "Filesystem"), wide=True),
    ),
    "deployments": (
        _NAME,
        Column("Ready", cells.ready_of_replicas),
        Column("Up-to-date", _count("status.updatedReplicas")),
        Column("Available", _count("status.availableReplicas")),
        _AGE,
        *_TEMPLATE,
    ),
    "replicasets": (
        _NAME,
        Column("Desired", _count("spec.replicas"), "integer"),
        Column("Current", _count("status.replicas"), "integer"),
        Column("Ready", _count("status.readyReplicas"), "integer"),
        _AGE,
        *_TEMPLATE,
    ),
    "daemonsets": (
        _NAME,
        Column("Desired", _count("status.desiredNumberScheduled"), "integer"),
        Column("Current", _count("status.currentNumberScheduled"), "integer"),
        Column("Ready", _count("status.numberReady"), "integer"),
        Column("Up-to-date", _count("status.updatedNumberScheduled"), "integer"),
        Column("Available", _count("status.numberAvailable"), "integer"),
        Column("Node Selector", cells.node_selector),
        _AGE,
        *_TEMPLATE,
    ),
    "statefulsets": (_NAME, Column("Ready", cells.ready_of_replicas), _AGE, *_TEMPLATE[:2]),
    "jobs": (
        _NAME,
        Column("Status", cells.job_status),
        Column("Completions", cells.job_completions),
        Column("Duration", cells.job_duration),
        _AGE,
        *_TEMPLATE,
    ),
    "poddisruptionbudgets": (
        _NAME,
        Column("Min Available", cells.field("spec.minAvailable", "N/A", as_text=True)),
        Column("Max Unavailable", cells.field("spec.maxUnavailable", "N/A", as_text=True)),
        Column("Allowed Disruptions", _count("status.disruptionsAllowed"), "integer"),
        _AGE,
    ),
    "resourcequotas": (
        _NAME,
        Column("Request", cells.quota_share(limits=False)),
        Column("Limit", cells.quota_share(limits=True)),
        _AGE,
    ),
    "leases": (_NAME, Column("Holder", _text("spec.holderIdentity", "")), _AGE),
    "volumeattachments": (
        _NAME,
        Column("Attacher", _text("spec.attacher", "")),
        Column("PV", _text("spec.source.persistentVolumeName", "")),
        Column("Node", _text("spec.nodeName", "")),
        Column("Attached", cells.field("status.attached", False), "boolean"),
        _AGE,
    ),
}

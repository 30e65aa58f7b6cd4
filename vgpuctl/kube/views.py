"""What the API server says of nodes, pods and budgets, as our own frozen data."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vgpuctl.model.fleet import Node
from vgpuctl.model.identity import NodeIdentity
from vgpuctl.model.machine import Machine, is_ours, is_shielded
from vgpuctl.model.places import Needs, Taint, Term, Toleration, amount, shared
from vgpuctl.model.pods import GPU_RESOURCE, GRACE_S, Budget, Demand, Freeze, Pod, Quota, Rollout
from vgpuctl.model.record import ON_SWITCH, marks_on, read_record
from vgpuctl.model.selectors import Selector

Object = Mapping[str, Any]

_MIRROR = "kubernetes.io/config.mirror"
#: The taints of a node that is not heard any more.
SILENT = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
#: How people tell other programs that a pod is not to be disturbed.
_NOT_NOW = (("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"), ("karpenter.sh/do-not-disrupt", "true"))
#: By these labels and annotations nodes tell that a program may add others like them.
_AUTOSCALERS = ("karpenter.sh/", "cluster-autoscaler.kubernetes.io/", "cluster.x-k8s.io/")
#: This one only keeps a program off.
_NO_AUTOSCALER = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
#: How Cluster API says on a node which of its Machines that is.
_MACHINE, _MACHINES_NAMESPACE = "cluster.x-k8s.io/machine", "cluster.x-k8s.io/cluster-namespace"
_PROVIDER = "vsphere://"


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node by itself: its lease and pods are told by other objects."""

    identity: NodeIdentity
    node: Node


@dataclass(frozen=True, slots=True)
class Renewal:
    """When a node's kubelet last renewed its lease."""

    node: str
    time: str | None


def pod(raw: Object, *, with_needs: bool = False) -> Pod:
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    annotations = meta.get("annotations") or {}
    owner = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), None)
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        node=spec.get("nodeName"),
        phase=status.get("phase", "Pending"),
        ready=_condition(status, "Ready").get("status") == "True",
        terminating="deletionTimestamp" in meta,
        ends_by=meta.get("deletionTimestamp") or "",
        grace_s=_grace(meta, spec),
        owner=f"{owner['kind']}/{owner['name']}" if owner else None,
        owner_uid=sys.intern(str(owner.get("uid") or "")) if owner else "",
        owner_version=sys.intern(str(owner.get("apiVersion") or "")) if owner else "",
        mirror=_MIRROR in annotations,
        empty_dir=any("emptyDir" in volume for volume in spec.get("volumes") or ()),
        not_now=next((f"{key}={value}" for key, value in _NOT_NOW if annotations.get(key) == value), ""),
        freeze=_freeze(annotations, spec),
        claims=tuple(_claims(meta, spec)),
        labels=meta.get("labels") or {},
        selector=spec.get("nodeSelector") or {},
        demand=None if spec.get("nodeName") else _demand(spec, status),
        needs=needs_of(spec) if with_needs else None,
    )


def _freeze(annotations: Object, spec: Object) -> Freeze:
    """The taint manager takes the smallest limit of all tolerations that cover a taint; DefaultTolerationSeconds adds
    one of 300 s where the pod names none."""
    if annotations.get(ON_SWITCH) != "freeze":
        return Freeze.NO
    tolerations = [(_toleration(raw), raw.get("tolerationSeconds")) for raw in spec.get("tolerations") or ()]
    for key in SILENT:
        limits = [limit for each, limit in tolerations if each.covers(Taint(key, effect="NoExecute"))]
        if not limits or any(limit is not None for limit in limits):
            return Freeze.UNPREPARED
    return Freeze.READY


def _claims(meta: Object, spec: Object) -> Iterator[str]:
    """Those of its own making, too, which bear its name."""
    for volume in spec.get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield f"{meta['namespace']}/{volume['persistentVolumeClaim']['claimName']}"
        elif "ephemeral" in volume:
            yield f"{meta['namespace']}/{meta['name']}-{volume['name']}"


def _grace(meta: Object, spec: Object) -> int:
    """Once it is terminating, the grace that it was given then."""
    told = (meta.get("deletionGracePeriodSeconds"), spec.get("terminationGracePeriodSeconds"))
    return next((int(seconds) for seconds in told if seconds is not None), GRACE_S)


def _demand(spec: Object, status: Object) -> Demand:
    """Only of pods without a node: of the many that run nobody asks."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return Demand(
        gpus=sum(_gpus(container) for container in spec.get("containers") or ()),
        affinity=tuple(Selector.of(term) for term in required.get("nodeSelectorTerms") or ()),
        unplaced=str(_condition(status, "PodScheduled").get("message") or ""),
    )


def needs_of(spec: Object) -> Needs:
    """Requests are those of the containers that run side by side: what else counts only adds to them."""
    requests: dict[str, int] = {}
    for container in spec.get("containers") or ():
        for name, value in ((container.get("resources") or {}).get("requests") or {}).items():
            requests[name] = requests.get(name, 0) + amount(str(value))
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None if required is None else tuple(_term(term) for term in required.get("nodeSelectorTerms") or ())
    return shared(
        Needs(
            requests=tuple(sorted(requests.items())),
            labels=tuple(sorted((spec.get("nodeSelector") or {}).items())),
            terms=terms,
            tolerations=tuple(_toleration(each) for each in spec.get("tolerations") or ()),
            priority=int(spec.get("priority") or 0),
        )
    )


def _term(raw: Object) -> Term:
    fields = Selector.of({"matchExpressions": raw.get("matchFields")})
    return Selector.of({"matchExpressions": raw.get("matchExpressions")}).expressions, fields.expressions


def _toleration(raw: Object) -> Toleration:
    return Toleration(
        raw.get("key") or "", raw.get("operator") or "Equal", raw.get("value") or "", raw.get("effect") or ""
    )


def _taint(raw: Object) -> Taint:
    return Taint(raw["key"], raw.get("value") or "", raw["effect"])


def _gpus(container: Object) -> int:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return _whole(asked.get(GPU_RESOURCE))


def _whole(quantity: Any) -> int:
    """Extended resources are counted in whole numbers, of which the server writes 1000 as 1k; what is none counts 0."""
    digits = str(quantity).removesuffix("k")
    return int(digits) * (1000 if digits != str(quantity) else 1) if digits.isdecimal() else 0


def quota(raw: Object) -> Quota | None:
    """None for a quota that does not count GPUs."""
    status, resource = raw.get("status") or {}, f"requests.{GPU_RESOURCE}"
    hard = (status.get("hard") or {}).get(resource)
    if hard is None:
        return None
    return Quota(
        namespace=raw["metadata"]["namespace"],
        name=raw["metadata"]["name"],
        used=_whole((status.get("used") or {}).get(resource)),
        hard=_whole(hard),
    )


def budget(raw: Object) -> Budget:
    status = raw.get("status") or {}
    return Budget(
        namespace=raw["metadata"]["namespace"],
        name=raw["metadata"]["name"],
        allowed=status.get("disruptionsAllowed", 0),
        covers=Selector.of(raw["spec"].get("selector")),
        desired=status.get("desiredHealthy", 0),
        expected=status.get("expectedPods", 0),
        healthy=status.get("currentHealthy", 0),
        always=raw["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
        seen=status.get("observedGeneration") == raw["metadata"].get("generation"),
        version=raw["metadata"]["resourceVersion"],
    )


def rollout(raw: Object) -> Rollout | None:
    """None for a DaemonSet that has nothing to update, or that does so at no one's cost."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    wanted, updated = int(status.get("desiredNumberScheduled") or 0), int(status.get("updatedNumberScheduled") or 0)
    if updated >= wanted or "maxUnavailable" not in rolling:
        return None
    most = _at_most(rolling["maxUnavailable"], wanted)
    if not most:
        return None
    meta = raw["metadata"]
    return Rollout(namespace=meta["namespace"], name=meta["name"], wanted=wanted, updated=updated, most_out=most)


def _at_most(written: Any, of: int) -> int:
    """A number, or a share that is rounded up."""
    text = str(written)
    return math.ceil(int(text[:-1]) * of / 100) if text.endswith("%") else int(text)


def daemon_set(raw: Object) -> str:
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


def attachment(raw: Object) -> tuple[str, str]:
    """On which node which volume hangs; one that a pod names itself has no name but this object's."""
    source = raw["spec"].get("source") or {}
    return raw["spec"]["nodeName"], source.get("persistentVolumeName") or raw["metadata"]["name"]


def claim(raw: Object) -> tuple[str, str]:
    """Which volume is bound to which claim."""
    return (raw.get("spec") or {}).get("volumeName") or "", f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


def job(raw: Object) -> tuple[str, bool]:
    """Does it pass over pods that were taken away from it, instead of counting them as failures?"""
    rules = ((raw.get("spec") or {}).get("podFailurePolicy") or {}).get("rules") or ()
    patterns = (p for rule in rules if rule.get("action") == "Ignore" for p in rule.get("onPodConditions") or ())
    ignores = any(p.get("type") == "DisruptionTarget" and p.get("status", "True") == "True" for p in patterns)
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}", ignores


def renewal(raw: Object) -> Renewal:
    return Renewal(raw["metadata"]["name"], (raw.get("spec") or {}).get("renewTime"))


def node(raw: Object) -> SeenNode:
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    ready = _condition(status, "Ready")
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    cordoned = _writer_of_the_cordon(meta) if spec.get("unschedulable") else {}
    seen = Node(
        name=meta["name"],
        version=meta["resourceVersion"],
        ready=ready.get("status") == "True",
        unschedulable=bool(spec.get("unschedulable")),
        labels=labels,
        record=read_record(labels, annotations),
        marks=marks_on(labels, annotations),
        heartbeat=ready.get("lastHeartbeatTime"),
        taints=tuple(taint["key"] for taint in spec.get("taints") or ()),
        keeps_off=tuple(_taint(each) for each in spec.get("taints") or () if each["effect"] != "PreferNoSchedule"),
        gpus=int((status.get("allocatable") or {}).get(GPU_RESOURCE, 0)),
        gives=tuple((name, amount(str(value))) for name, value in (status.get("allocatable") or {}).items()),
        autoscaled=any(key.startswith(_AUTOSCALERS) and key != _NO_AUTOSCALER for key in (*labels, *annotations)),
        machine=_machine_named(annotations),
        cordoned_by=str(cordoned.get("manager") or ""),
        cordoned_since=str(cordoned.get("time") or ""),
    )
    return SeenNode(_identity(raw), seen)


def _machine_named(annotations: Object) -> str:
    named = annotations.get(_MACHINES_NAMESPACE), annotations.get(_MACHINE)
    return "/".join(map(str, named)) if all(named) else ""


def machine(raw: Object, *, at: str) -> Machine:
    """`at`: where Machines of all namespaces begin, as this server serves them."""
    meta, annotations = raw["metadata"], raw["metadata"].get("annotations") or {}
    return Machine(
        path=f"{at}/namespaces/{meta['namespace']}/machines/{meta['name']}",
        namespace=meta["namespace"],
        name=meta["name"],
        version=meta["resourceVersion"],
        uuid=str((raw.get("spec") or {}).get("providerID") or "").removeprefix(_PROVIDER).lower(),
        shielded=is_shielded(annotations),
        ours=is_ours(annotations),
    )


def _writer_of_the_cordon(meta: Object) -> Object:
    """Who last wrote spec.unschedulable, by the server's own books."""
    fields = (entry for entry in meta.get("managedFields") or () if isinstance(entry.get("fieldsV1"), dict))
    return next((e for e in fields if "f:unschedulable" in (e["fieldsV1"].get("f:spec") or {})), {})


def _identity(raw: Object) -> NodeIdentity:
    """What tells which VM a node is: its provider's id, if that is vSphere, and its system's uuid."""
    provider = str((raw.get("spec") or {}).get("providerID") or "")
    system = str(((raw.get("status") or {}).get("nodeInfo") or {}).get("systemUUID") or "")
    vm = provider.removeprefix(_PROVIDER).lower() if provider.startswith(_PROVIDER) else ""
    return NodeIdentity(raw["metadata"]["name"], vm, system.lower())


def _condition(status: Object, kind: str) -> Object:
    return next((c for c in status.get("conditions") or () if c.get("type") == kind), {})

"""What the API server says about nodes, pods and budgets, as our own frozen data."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vgpuctl.basics import bounded, quantities
from vgpuctl.model.fleet import Node
from vgpuctl.model.hold import read_hold
from vgpuctl.model.identity import NodeIdentity
from vgpuctl.model.machine import Machine, is_ours, is_shielded
from vgpuctl.model.places import Needs, Taint, Term, Toleration, shared
from vgpuctl.model.pods import (
    DO_NOT_DISRUPT,
    GPU_RESOURCE,
    GRACE_S,
    SAFE_TO_EVICT,
    Budget,
    Demand,
    Freeze,
    Pod,
    Quota,
    Rollout,
)
from vgpuctl.model.record import ON_SWITCH, marks_on, read_record
from vgpuctl.model.selectors import Selector

Object = Mapping[str, Any]

#: Kubernetes: kubelet marks mirrors of its static pods so. kubectl drain leaves them.
_MIRROR = "kubernetes.io/config.mirror"
#: The taints of a node that does not report any more.
#: Measured: 40 to 50 s after its kubelet was frozen, a node was NotReady and had the first of them.
SILENT = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
#: The annotations by which people keep other programs away from a pod.
_NOT_NOW = {asked.partition("=")[0]: asked for asked in (SAFE_TO_EVICT, DO_NOT_DISRUPT)}
#: Labels and annotations with these prefixes show that a program may add similar nodes.
_AUTOSCALERS = ("karpenter.sh/", "cluster-autoscaler.kubernetes.io/", "cluster.x-k8s.io/")
#: This one only keeps a program away.
_NO_AUTOSCALER = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
#: The annotations in which Cluster API names a node's Machine.
_MACHINE, _MACHINES_NAMESPACE = "cluster.x-k8s.io/machine", "cluster.x-k8s.io/cluster-namespace"
#: vSphere's cloud provider writes `vsphere://<BIOS uuid>` into spec.providerID.
_PROVIDER = "vsphere://"


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node by itself. Its lease and its pods are separate objects."""

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
    # kubectl drain: a pod is replicated if an owner reference is its controller's.
    owner = next((o for o in meta.get("ownerReferences") or () if o.get("controller")), None)
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        node=spec.get("nodeName"),
        phase=status.get("phase", "Pending"),
        ready=_condition(status, "Ready").get("status") == "True",
        terminating="deletionTimestamp" in meta,
        ends_by=_end(meta),
        grace_s=_grace(meta, spec),
        owner=f"{owner['kind']}/{owner['name']}" if owner else None,
        owner_uid=sys.intern(str(owner.get("uid") or "")) if owner else "",
        owner_version=sys.intern(str(owner.get("apiVersion") or "")) if owner else "",
        mirror=_MIRROR in annotations,
        empty_dir=any("emptyDir" in volume for volume in spec.get("volumes") or ()),
        not_now=_not_now(annotations),
        freeze=_freeze(annotations, spec),
        claims=tuple(_claims(meta, spec)),
        labels=meta.get("labels") or {},
        selector=spec.get("nodeSelector") or {},
        demand=None if spec.get("nodeName") else _demand(spec, status),
        needs=needs_of(spec) if with_needs else None,
    )


def _not_now(annotations: Object) -> tuple[str, ...]:
    return tuple(asked for key, asked in _NOT_NOW.items() if f"{key}={annotations.get(key)}" == asked)


def _freeze(annotations: Object, spec: Object) -> Freeze:
    """Return whether a pod can be frozen.

    The taint manager takes the limit of the first toleration that covers a taint (Kubernetes 1.36,
    GetMatchingTolerations). DefaultTolerationSeconds adds a toleration of 300 s for each of these taints that the pod
    does not name.
    """
    if annotations.get(ON_SWITCH) != "freeze":
        return Freeze.NO
    tolerations = [(_toleration(raw), raw.get("tolerationSeconds")) for raw in spec.get("tolerations") or ()]
    # Measured on a real control plane: a pod with both tolerations kept its UID and went on. A pod to which they
    # were patched later was deleted.
    for key in SILENT:
        taint = Taint(key, effect="NoExecute")
        if next((limit for each, limit in tolerations if each.covers(taint)), 0) is not None:
            return Freeze.UNPREPARED
    return Freeze.READY


def _claims(meta: Object, spec: Object) -> Iterator[str]:
    """Yield the pod's claims, and those of its ephemeral volumes, which are named after the pod."""
    for volume in spec.get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield f"{meta['namespace']}/{volume['persistentVolumeClaim']['claimName']}"
        elif "ephemeral" in volume:
            yield f"{meta['namespace']}/{meta['name']}-{volume['name']}"


def _end(meta: Object) -> str:
    """Return when a terminating pod must have ended; "" for other pods."""
    end = meta.get("deletionTimestamp")
    if end is None:
        return ""
    bounded.time(end, "metadata.deletionTimestamp")
    return str(end)


def _grace(meta: Object, spec: Object) -> int:
    """Return the pod's grace period; once it terminates, the one it was given then.

    A negative one counts as 0, as in kubelet.
    """
    periods = (meta.get("deletionGracePeriodSeconds"), spec.get("terminationGracePeriodSeconds"))
    seconds = next((seconds for seconds in periods if seconds is not None), GRACE_S)
    return max(0, bounded.whole(seconds, "its grace period", -bounded.MOST_WHOLE))


def _demand(spec: Object, status: Object) -> Demand:
    """Return what a pod asks for. Only pods without a node need this; the running pods are many."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return Demand(
        gpus=sum(_gpus(container) for container in spec.get("containers") or ()),
        affinity=tuple(Selector.of(term) for term in required.get("nodeSelectorTerms") or ()),
        unplaced=bounded.cut(_condition(status, "PodScheduled").get("message")),
    )


def needs_of(spec: Object) -> Needs:
    """Return a pod's needs. Its requests are those of containers that run side by side; the rest only adds to them."""
    requests: dict[str, int] = {}
    for container in spec.get("containers") or ():
        for name, value in ((container.get("resources") or {}).get("requests") or {}).items():
            requests[name] = requests.get(name, 0) + quantities.thousandths(value, "a request of its containers")
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None if required is None else tuple(_term(term) for term in required.get("nodeSelectorTerms") or ())
    return shared(
        Needs(
            requests=tuple(sorted(requests.items())),
            labels=tuple(sorted((spec.get("nodeSelector") or {}).items())),
            terms=terms,
            tolerations=tuple(_toleration(each) for each in spec.get("tolerations") or ()),
            priority=bounded.whole(spec.get("priority") or 0, "spec.priority", -bounded.MOST_WHOLE),
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
    # Kubernetes: a GPU's request equals its limit, and the limit alone is enough.
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return quantities.count(amounts.get(GPU_RESOURCE, "0"), f"its request of {GPU_RESOURCE}")


def quota(raw: Object) -> Quota | None:
    """Return a quota, or None if it does not count GPUs."""
    # Kubernetes: quotas count extended resources by requests only.
    status, resource = raw.get("status") or {}, f"requests.{GPU_RESOURCE}"
    hard = (status.get("hard") or {}).get(resource)
    if hard is None:
        return None
    return Quota(
        namespace=raw["metadata"]["namespace"],
        name=raw["metadata"]["name"],
        used=quantities.count((status.get("used") or {}).get(resource, "0"), f"status.used of {GPU_RESOURCE}"),
        hard=quantities.count(hard, f"status.hard of {GPU_RESOURCE}"),
    )


def budget(raw: Object) -> Budget:
    status = raw.get("status") or {}

    def number(name: str) -> int:
        return bounded.whole(status.get(name) or 0, f"status.{name}")

    return Budget(
        namespace=raw["metadata"]["namespace"],
        name=raw["metadata"]["name"],
        allowed=number("disruptionsAllowed"),
        covers=Selector.of(raw["spec"].get("selector")),
        desired=number("desiredHealthy"),
        expected=number("expectedPods"),
        healthy=number("currentHealthy"),
        always=raw["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow",
        seen=status.get("observedGeneration") == raw["metadata"].get("generation"),
        version=raw["metadata"]["resourceVersion"],
    )


def rollout(raw: Object) -> Rollout | None:
    """Return the rollout of a DaemonSet, or None if nothing is left to update, or the update takes no pod away."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    names = ("desiredNumberScheduled", "updatedNumberScheduled")
    wanted, updated = (bounded.whole(status.get(name) or 0, f"status.{name}") for name in names)
    # Kubernetes: with OnDelete, as GPU Operator's driver has it, no rollout waits for a node.
    if updated >= wanted or "maxUnavailable" not in rolling:
        return None
    most = bounded.part(rolling["maxUnavailable"], "maxUnavailable of its rolling update", wanted)
    if not most:
        return None
    meta = raw["metadata"]
    return Rollout(namespace=meta["namespace"], name=meta["name"], wanted=wanted, updated=updated, most_out=most)


def daemon_set(raw: Object) -> str:
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


def attachment(raw: Object) -> tuple[str, str]:
    """Return a node and the volume attached to it.

    A volume written in the pod itself has no name, so the attachment's name is used.
    """
    source = raw["spec"].get("source") or {}
    return raw["spec"]["nodeName"], source.get("persistentVolumeName") or raw["metadata"]["name"]


def claim(raw: Object) -> tuple[str, str]:
    """Return a volume and the claim it is bound to."""
    return (raw.get("spec") or {}).get("volumeName") or "", f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


def job(raw: Object) -> tuple[str, bool]:
    """Return a Job's name, and whether its failure policy ignores pods that were evicted."""
    rules = ((raw.get("spec") or {}).get("podFailurePolicy") or {}).get("rules") or ()
    patterns = (p for rule in rules if rule.get("action") == "Ignore" for p in rule.get("onPodConditions") or ())
    # Kubernetes: an eviction sets this condition. A pattern without a status means True.
    ignores = any(p.get("type") == "DisruptionTarget" and p.get("status", "True") == "True" for p in patterns)
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}", ignores


def renewal(raw: Object) -> Renewal:
    return Renewal(raw["metadata"]["name"], (raw.get("spec") or {}).get("renewTime"))


def node(raw: Object) -> SeenNode:
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    ready = _condition(status, "Ready")
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    allocatable = status.get("allocatable") or {}
    cordoned = _writer_of_the_cordon(meta) if spec.get("unschedulable") else {}
    seen = Node(
        name=meta["name"],
        version=meta["resourceVersion"],
        ready=ready.get("status") == "True",
        unschedulable=bool(spec.get("unschedulable")),
        labels=labels,
        record=read_record(labels, annotations),
        hold=read_hold(annotations),
        marks=marks_on(labels, annotations),
        # Kubernetes 1.36: kubelet posts an unchanged status only every five minutes (decision 0003).
        heartbeat=ready.get("lastHeartbeatTime"),
        taints=tuple(taint["key"] for taint in spec.get("taints") or ()),
        # Kubernetes: the scheduler avoids PreferNoSchedule, but it keeps no pod off.
        keeps_off=tuple(_taint(each) for each in spec.get("taints") or () if each["effect"] != "PreferNoSchedule"),
        gpus=quantities.count(allocatable.get(GPU_RESOURCE, "0"), f"allocatable {GPU_RESOURCE}"),
        gives=tuple((name, quantities.thousandths(each, "allocatable")) for name, each in allocatable.items()),
        autoscaled=any(key.startswith(_AUTOSCALERS) and key != _NO_AUTOSCALER for key in (*labels, *annotations)),
        machine=_machine_named(annotations),
        cordoned_by=str(cordoned.get("manager") or ""),
        cordoned_since=str(cordoned.get("time") or ""),
    )
    return SeenNode(_identity(raw), seen)


def _machine_named(annotations: Object) -> str:
    named = [bounded.text(annotations.get(key) or "", key) for key in (_MACHINES_NAMESPACE, _MACHINE)]
    return "/".join(named) if all(named) else ""


def machine(raw: Object, *, at: str) -> Machine:
    """Return a Machine. `at`: the path under which this server serves the Machines of all namespaces."""
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
    """Return the last writer of spec.unschedulable, from the server's managed fields."""
    # Measured: they name the program (`kubectl`), not the person. A second cordon leaves no trace at all.
    fields = (entry for entry in meta.get("managedFields") or () if isinstance(entry.get("fieldsV1"), dict))
    return next((e for e in fields if "f:unschedulable" in (e["fieldsV1"].get("f:spec") or {})), {})


def _identity(raw: Object) -> NodeIdentity:
    """Return what identifies a node's VM: its provider id, if that is vSphere's, and its system UUID."""
    provider = bounded.text((raw.get("spec") or {}).get("providerID") or "", "spec.providerID")
    system = bounded.text(((raw.get("status") or {}).get("nodeInfo") or {}).get("systemUUID") or "", "systemUUID")
    # Decision 0017: k3s, RKE and kubemark write ids of their own, which mean nothing here.
    vm = provider.removeprefix(_PROVIDER).lower() if provider.startswith(_PROVIDER) else ""
    return NodeIdentity(raw["metadata"]["name"], vm, system.lower())


def _condition(status: Object, kind: str) -> Object:
    return next((c for c in status.get("conditions") or () if c.get("type") == kind), {})

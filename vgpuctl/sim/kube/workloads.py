"""Deployments and ReplicaSets: so many pods as are wished for, replaced the moment one is leaving."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime

from vgpuctl.sim.kube.ground import Ground, Teller
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    controller_of,
    copied,
    is_active,
    is_leaving,
    is_true,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    set_condition,
    uid_of,
)
from vgpuctl.sim.kube.queue import Queue
from vgpuctl.sim.kube.store import OWNER, Change, Key, key_of

HASH = "pod-template-hash"
_SAFE = "bcdfghjklmnpqrstvwxz2456789"


class ReplicaSets:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._queue = Queue(ground.clock, self._look_at)
        self._teller = Teller("replicaset-controller")
        ground.store.subscribe(["replicasets"], lambda change: self._queue.add(key_of(change.object)))
        ground.store.subscribe(["pods"], self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        owner = controller_of(change.object)
        if owner is not None and owner["kind"] == "ReplicaSet":
            self._queue.add((namespace_of(change.object), owner["name"]))

    def _look_at(self, key: Key) -> None:
        replica_set = self._ground.store.get("replicasets", *key)
        if replica_set is None or is_leaving(replica_set):
            return
        active = [pod for pod in self._ground.store.some("pods", OWNER, uid_of(replica_set)) if is_active(pod)]
        missing = replica_set["spec"]["replicas"] - len(active)
        for _ in range(missing):
            self._add_pod(replica_set)
        for pod in sorted(active, key=_worth)[:-missing] if missing < 0 else ():
            self._ground.delete("pods", pod)
            self._ground.tell(replica_set, self._teller, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")
        self._ground.store.edit("replicasets", *key, lambda item: _count_replicas(item, active))

    def _add_pod(self, replica_set: Object) -> None:
        pod = new_pod(replica_set, self._ground.store.suffix())
        self._ground.create("pods", pod)
        self._ground.tell(replica_set, self._teller, "SuccessfulCreate", f"Created pod: {name_of(pod)}")


def new_pod(owner: Object, suffix: str) -> Object:
    """A pod of the owner's template."""
    template = copied(owner["spec"]["template"])
    metadata = template.get("metadata") or {}
    name = name_of(owner)
    metadata |= {"name": f"{name}-{suffix}", "generateName": f"{name}-", "namespace": namespace_of(owner)}
    metadata["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {"containers": []}}


def _worth(pod: Object) -> tuple[bool, bool, str, str]:
    """Which pods go first when there are too many: unbound, then unready, then the youngest."""
    made = str(pod["metadata"]["creationTimestamp"])
    youngest_first = "".join(chr(255 - ord(letter)) for letter in made)
    return bool(pod["spec"].get("nodeName")), is_true(pod, "Ready"), youngest_first, name_of(pod)


def _count_replicas(item: Object, active: list[Object]) -> None:
    ready = sum(is_true(pod, "Ready") for pod in active)
    status: Object = {"replicas": len(active), "fullyLabeledReplicas": len(active)}
    status |= {"readyReplicas": ready, "availableReplicas": ready} if ready else {}
    item["status"] = status | {"observedGeneration": item["metadata"]["generation"]}


class Deployments:
    """The newest template's ReplicaSet gets all replicas at once; rollouts are not paced."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._queue = Queue(ground.clock, self._look_at)
        self._teller = Teller("deployment-controller")
        ground.store.subscribe(["deployments"], lambda change: self._queue.add(key_of(change.object)))
        ground.store.subscribe(["replicasets"], self._replica_set_changed)

    def _replica_set_changed(self, change: Change) -> None:
        owner = controller_of(change.object)
        if owner is not None and owner["kind"] == "Deployment":
            self._queue.add((namespace_of(change.object), owner["name"]))

    def _look_at(self, key: Key) -> None:
        deployment = self._ground.store.get("deployments", *key)
        if deployment is None or is_leaving(deployment):
            return
        current = self._current(deployment)
        for old in self._ground.store.where("replicasets", OWNER, uid_of(deployment)):
            wanted = deployment["spec"]["replicas"] if name_of(old) == name_of(current) else 0
            self._scale(deployment, old, wanted)
        now = self._ground.clock.utc()
        counts = at(self._ground.store.get(*_replica_set(current)) or {}, "status") or {}
        self._ground.store.edit("deployments", *key, lambda item: _count_deployment(item, counts, now))

    def _current(self, deployment: Object) -> Object:
        fresh = new_replica_set(deployment)
        found = self._ground.store.get(*_replica_set(fresh))
        return found or self._ground.create("replicasets", fresh)

    def _scale(self, deployment: Object, replica_set: Object, replicas: int) -> None:
        before = replica_set["spec"]["replicas"]
        if before == replicas:
            return
        self._ground.store.edit(*_replica_set(replica_set), lambda item: item["spec"].update(replicas=replicas))
        way = "up" if replicas > before else "down"
        said = f"Scaled {way} replica set {name_of(replica_set)} from {before} to {replicas}"
        self._ground.tell(deployment, self._teller, "ScalingReplicaSet", said)


def _replica_set(item: Object) -> tuple[str, str, str]:
    return "replicasets", namespace_of(item), name_of(item)


def _fingerprint(template: Object) -> str:
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:9])


def new_replica_set(deployment: Object) -> Object:
    """The ReplicaSet of the deployment's present template."""
    template = copied(deployment["spec"]["template"])
    fingerprint = _fingerprint(template)
    mark = {HASH: fingerprint}
    template["metadata"] = (template.get("metadata") or {}) | {
        "labels": labels_of({"metadata": template.get("metadata") or {}}) | mark
    }
    selector = copied(deployment["spec"]["selector"])
    selector["matchLabels"] = (selector.get("matchLabels") or {}) | mark
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)}-{fingerprint}",
            "namespace": namespace_of(deployment),
            "labels": dict(template["metadata"]["labels"]),
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
        "status": {"replicas": 0},
    }


def _count_deployment(item: Object, counts: Object, now: datetime) -> None:
    wanted, ready = item["spec"]["replicas"], counts.get("readyReplicas", 0)
    total = counts.get("replicas", 0)
    status: Object = {"replicas": total, "updatedReplicas": total, "readyReplicas": ready, "availableReplicas": ready}
    status["unavailableReplicas"] = max(0, wanted - ready)
    status = {key: value for key, value in status.items() if value}
    conditions = at(item, "status.conditions") or []
    item["status"] = {"observedGeneration": item["metadata"]["generation"]} | status | {"conditions": conditions}
    enough = ready >= wanted - wanted // 4
    reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
    message = f"Deployment {'has' if enough else 'does not have'} minimum availability."
    said = {"type": "Available", "status": "True" if enough else "False", "reason": reason, "message": message}
    set_condition(item, now, said)

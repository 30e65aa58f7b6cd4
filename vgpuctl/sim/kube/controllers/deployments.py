"""The Deployment controller: one ReplicaSet for each template, and rollouts within maxSurge and maxUnavailable."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.int_or_percent import amount_of
from vgpuctl.sim.kube.controllers.workloads import Workloads, add_labels, template_hash
from vgpuctl.sim.kube.objects import (
    Object,
    annotations_of,
    at,
    copied,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    set_condition,
)
from vgpuctl.sim.kube.store import path_of

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


class Deployments(Workloads):
    kind, plural, owned = "Deployment", "deployments", "replicasets"

    def reconcile(self, item: Object) -> None:
        current = self._current(item)
        sets = sorted(self.owned_objects(item), key=name_of)
        old = [found for found in sets if name_of(found) != name_of(current)]
        if item["spec"]["replicas"] == 0 or not item["spec"].get("paused"):
            self._roll(item, current, old)
        self._set_counts(item)

    def _current(self, item: Object) -> Object:
        wanted_set = new_replica_set(item)
        found = self._store.get(*path_of("replicasets", wanted_set))
        # Kubernetes: one ReplicaSet for each template; its name ends in the template's hash.
        if found is not None and REVISION in annotations_of(found):
            return found
        sets = self.owned_objects(item)
        number = 1 + max(map(_revision, sets), default=0)
        wanted_set["metadata"]["annotations"] = {REVISION: str(number)}
        self._store.edit(*path_of(self.plural, item), lambda it: _annotate(it, str(number)))
        if found is None:
            return self._context.create("replicasets", wanted_set)
        return self._store.edit(*path_of("replicasets", wanted_set), lambda it: _annotate(it, str(number))) or found

    def _roll(self, item: Object, current: Object, old: list[Object]) -> None:
        wanted: int = item["spec"]["replicas"]
        old_replicas = sum(found["spec"]["replicas"] for found in old)
        # Kubernetes: Recreate starts new pods only when the old ones are gone.
        if at(item, "spec.strategy.type") == "Recreate":
            self._scale_old(item, old, old_replicas)
            if not any(at(found, "status.replicas") for found in old):
                self._scale(item, current, wanted)
            return
        surge, _ = _limits(item)
        now = current["spec"]["replicas"]
        room = wanted + surge - now - old_replicas
        self._scale(item, current, wanted if now > wanted or not old else min(wanted, now + max(0, room)))
        unready = max(0, now - (at(current, "status.availableReplicas") or 0))
        spare = now + old_replicas - (wanted - _most_missing(item)) - unready
        # Kubernetes: old pods that are not available go first, beyond what the limits spare.
        self._scale_old(item, old, min(old_replicas, max(spare, _unavailable(old))))

    def _scale_old(self, item: Object, old: list[Object], count: int) -> None:
        """Scale old ReplicaSets down by `count` pods, unavailable pods first."""
        for found in sorted(old, key=lambda found: (at(found, "status.availableReplicas") or 0, name_of(found))):
            removed = min(count, found["spec"]["replicas"])
            self._scale(item, found, found["spec"]["replicas"] - removed)
            count -= removed

    def _scale(self, item: Object, replica_set: Object, replicas: int) -> None:
        before = replica_set["spec"]["replicas"]
        if before == replicas:
            return
        self._store.edit(*path_of("replicasets", replica_set), lambda found: found["spec"].update(replicas=replicas))
        direction = "up" if replicas > before else "down"
        message = f"Scaled {direction} replica set {name_of(replica_set)} from {before} to {replicas}"
        self._context.record_event(item, self._event_source, "ScalingReplicaSet", message)

    def _set_counts(self, item: Object) -> None:
        sets = self.owned_objects(item)
        wanted, newest = item["spec"]["replicas"], name_of(new_replica_set(item))
        total, ready = (
            sum(at(found, f"status.{field}") or 0 for found in sets) for field in ("replicas", "readyReplicas")
        )
        updated = sum(at(found, "status.replicas") or 0 for found in sets if name_of(found) == newest)
        status = {"replicas": total, "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready}
        status["unavailableReplicas"] = max(0, max(total, wanted) - ready)
        self.set_status(item, {name: count for name, count in status.items() if count})
        now = self._context.clock.utc()
        done = updated == total == ready == wanted

        def set_conditions(present: Object) -> None:
            set_condition(present, now, _available(ready >= wanted - _most_missing(item)))
            set_condition(present, now, _progressing(newest, done))

        self._store.edit(*path_of(self.plural, item), set_conditions)


def _unavailable(old: list[Object]) -> int:
    """Count the old pods that are not available: deleting them costs nothing."""
    return sum(max(0, found["spec"]["replicas"] - (at(found, "status.availableReplicas") or 0)) for found in old)


def _limits(item: Object) -> tuple[int, int]:
    """Return how many pods a rolling update may have too many, and how many too few."""
    wanted, rolling = item["spec"]["replicas"], at(item, "spec.strategy.rollingUpdate") or {}
    # Kubernetes: maxSurge is rounded up, maxUnavailable down.
    surge = amount_of(rolling.get("maxSurge", "25%"), wanted, up=True)
    missing = amount_of(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    # Kubernetes: if both come out as zero, one pod may be missing, or the rollout could not begin.
    return surge, missing or (0 if surge else 1)


def _most_missing(item: Object) -> int:
    """Return how many pods an available Deployment may miss. Only a rolling update may miss any."""
    # Kubernetes: MaxUnavailable in pkg/controller/deployment/util.
    rolls = at(item, "spec.strategy.type") == "RollingUpdate"
    return min(_limits(item)[1], item["spec"]["replicas"]) if rolls else 0


def _available(enough: bool) -> Object:
    reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
    message = f"Deployment {'has' if enough else 'does not have'} minimum availability."
    return {"type": "Available", "status": "True" if enough else "False", "reason": reason, "message": message}


def _progressing(newest: str, done: bool) -> Object:
    reason = "NewReplicaSetAvailable" if done else "ReplicaSetUpdated"
    message = f'ReplicaSet "{newest}" {"has successfully progressed." if done else "is progressing."}'
    return {"type": "Progressing", "status": "True", "reason": reason, "message": message}


def _revision(item: Object) -> int:
    """Return a ReplicaSet's revision; 0 where a person wrote something else into the annotation."""
    text = annotations_of(item).get(REVISION, "")
    return int(text) if text.isascii() and text.isdecimal() else 0


def _annotate(item: Object, revision: str) -> None:
    item["metadata"]["annotations"] = annotations_of(item) | {REVISION: revision}


def new_replica_set(deployment: Object) -> Object:
    """Return the ReplicaSet for the deployment's present template."""
    template = copied(deployment["spec"]["template"])
    mark = {HASH: template_hash(template)}
    add_labels(template, mark)
    selector = copied(deployment["spec"]["selector"])
    selector["matchLabels"] = (selector.get("matchLabels") or {}) | mark
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{name_of(deployment)}-{mark[HASH]}",
            "namespace": namespace_of(deployment),
            "labels": dict(labels_of(template)),
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {"replicas": 0, "selector": selector, "template": template},
        "status": {"replicas": 0},
    }

"""The StatefulSet controller: pods with stable names, created in order, each after those before it run."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.workloads import Workloads, add_labels, new_pod, template_hash
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    copied,
    is_active,
    is_finished,
    is_leaving,
    is_true,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
)

HASH = "controller-revision-hash"
_INDEX = "apps.kubernetes.io/pod-index"
_NAME = "statefulset.kubernetes.io/pod-name"


class StatefulSets(Workloads):
    kind, plural = "StatefulSet", "statefulsets"

    def reconcile(self, item: Object) -> None:
        pods = {name_of(pod): pod for pod in self.owned_objects(item)}
        names = [f"{name_of(item)}-{number}" for number in range(item["spec"]["replicas"])]
        wanted = {name: pods.get(name) for name in names}
        surplus = sorted((pod for name, pod in pods.items() if name not in wanted), key=_ordinal)
        if self._create_missing(item, wanted) and self._delete_surplus(item, surplus):
            self._update_one(item, [pod for pod in wanted.values() if pod is not None])
        self._set_counts(item, list(pods.values()))

    def _create_missing(self, item: Object, wanted: dict[str, Object | None]) -> bool:
        """Create missing pods in order. A pod that ended or is leaving must be gone before its name is used again."""
        complete = True
        for number, (name, pod) in enumerate(wanted.items()):
            if pod is None:
                self._add_claims(item, name)
                self.create_pod(item, ordered_pod(item, number))
            elif is_finished(pod) and not is_leaving(pod):
                self._context.delete("pods", pod)
            if pod is None or not is_active(pod) or not is_true(pod, "Ready"):
                complete = False
                # Kubernetes: OrderedReady waits for each pod before the next, so one pod on a lost node stops the rest.
                if at(item, "spec.podManagementPolicy") != "Parallel":
                    return False
        return complete

    def _delete_surplus(self, item: Object, surplus: list[Object]) -> bool:
        """Delete from the end. The next pod goes only when the last is gone."""
        parallel = at(item, "spec.podManagementPolicy") == "Parallel"
        for pod in surplus if parallel else surplus[-1:]:
            if not is_leaving(pod):
                self.delete_pod(item, pod)
        return not surplus

    def _update_one(self, item: Object, pods: list[Object]) -> None:
        """Delete the last pod with an outdated template. All pods are running at this point."""
        if at(item, "spec.updateStrategy.type") == "OnDelete":
            return
        # Kubernetes: pods below the partition keep their template.
        first = at(item, "spec.updateStrategy.rollingUpdate.partition") or 0
        revision = _revision(item)
        outdated = [pod for pod in pods[first:] if labels_of(pod).get(HASH) != revision]
        # Kubernetes: from the highest number down, one pod at a time.
        if outdated:
            self.delete_pod(item, outdated[-1])

    def _add_claims(self, item: Object, pod: str) -> None:
        for template in item["spec"].get("volumeClaimTemplates") or []:
            claim = copied(template)
            claim["metadata"] = {**claim["metadata"], "name": f"{name_of(template)}-{pod}"}
            claim["metadata"]["namespace"] = namespace_of(item)
            claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            # Kubernetes: a claim outlives its pod, and the next pod of the same name takes it over.
            if self._store.get("persistentvolumeclaims", namespace_of(item), name_of(claim)) is None:
                self._context.create("persistentvolumeclaims", claim)

    def _set_counts(self, item: Object, pods: list[Object]) -> None:
        revision = _revision(item)
        active = [pod for pod in pods if is_active(pod)]
        ready = sum(is_true(pod, "Ready") for pod in active)
        updated = sum(labels_of(pod).get(HASH) == revision for pod in active)
        all_new = updated == len(active) == item["spec"]["replicas"]
        former = at(item, "status.currentRevision")
        status: Object = {"replicas": len(active), "updateRevision": f"{name_of(item)}-{revision}"}
        status["currentRevision"] = status["updateRevision"] if all_new or not former else former
        status |= {"currentReplicas": updated if all_new else len(active) - updated, "updatedReplicas": updated}
        self.set_status(item, status | {"readyReplicas": ready, "availableReplicas": ready, "collisionCount": 0})


def ordered_pod(item: Object, number: int) -> Object:
    pod = new_pod(item, str(number))
    name = name_of(pod)
    add_labels(pod, {HASH: _revision(item), _INDEX: str(number), _NAME: name})
    pod["spec"] |= {"hostname": name, "subdomain": item["spec"].get("serviceName") or ""}
    claims = [name_of(template) for template in item["spec"].get("volumeClaimTemplates") or []]
    others = [found for found in pod["spec"].get("volumes") or [] if found.get("name") not in claims]
    # Kubernetes: the claim's name is the template's and the pod's.
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims]
    if volumes or others:
        pod["spec"]["volumes"] = [*volumes, *others]
    pod["metadata"]["ownerReferences"] = [owner_reference(item)]
    return pod


def _revision(item: Object) -> str:
    return template_hash(item["spec"]["template"])


def _ordinal(pod: Object) -> tuple[int, str]:
    number = name_of(pod).rpartition("-")[2]
    return (int(number) if number.isdecimal() else -1), name_of(pod)

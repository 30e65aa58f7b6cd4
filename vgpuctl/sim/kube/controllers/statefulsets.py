"""StatefulSets: pods with stable names, made in order, each only when those before it run."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.workloads import Workloads, fingerprint, marked, new_pod
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

    def tend(self, item: Object) -> None:
        pods = {name_of(pod): pod for pod in self.possessions(item)}
        names = [f"{name_of(item)}-{number}" for number in range(item["spec"]["replicas"])]
        wanted = {name: pods.get(name) for name in names}
        surplus = sorted((pod for name, pod in pods.items() if name not in wanted), key=_ordinal)
        if self._fill(item, wanted) and self._shrink(item, surplus):
            self._renew(item, [pod for pod in wanted.values() if pod is not None])
        self._count(item, list(pods.values()))

    def _fill(self, item: Object, wanted: dict[str, Object | None]) -> bool:
        """One after another; a pod that ended or is leaving must be gone before its name is used again."""
        whole = True
        for number, (name, pod) in enumerate(wanted.items()):
            if pod is None:
                self._add_claims(item, name)
                self.add(item, ordered_pod(item, number))
            elif is_finished(pod) and not is_leaving(pod):
                self._context.delete("pods", pod)
            if pod is None or not is_active(pod) or not is_true(pod, "Ready"):
                whole = False
                if at(item, "spec.podManagementPolicy") != "Parallel":
                    return False
        return whole

    def _shrink(self, item: Object, surplus: list[Object]) -> bool:
        """From the end; the next goes when the last is gone."""
        parallel = at(item, "spec.podManagementPolicy") == "Parallel"
        for pod in surplus if parallel else surplus[-1:]:
            if not is_leaving(pod):
                self.drop(item, pod)
        return not surplus

    def _renew(self, item: Object, pods: list[Object]) -> None:
        """The last one that is of an older template goes; all others run."""
        if at(item, "spec.updateStrategy.type") == "OnDelete":
            return
        first = at(item, "spec.updateStrategy.rollingUpdate.partition") or 0
        revision = _revision(item)
        stale = [pod for pod in pods[first:] if labels_of(pod).get(HASH) != revision]
        if stale:
            self.drop(item, stale[-1])

    def _add_claims(self, item: Object, pod: str) -> None:
        for template in item["spec"].get("volumeClaimTemplates") or []:
            claim = copied(template)
            claim["metadata"] = {**claim["metadata"], "name": f"{name_of(template)}-{pod}"}
            claim["metadata"]["namespace"] = namespace_of(item)
            claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            if self._store.get("persistentvolumeclaims", namespace_of(item), name_of(claim)) is None:
                self._context.create("persistentvolumeclaims", claim)

    def _count(self, item: Object, pods: list[Object]) -> None:
        revision = _revision(item)
        made = [pod for pod in pods if is_active(pod)]
        ready = sum(is_true(pod, "Ready") for pod in made)
        updated = sum(labels_of(pod).get(HASH) == revision for pod in made)
        all_new = updated == len(made) == item["spec"]["replicas"]
        former = at(item, "status.currentRevision")
        status: Object = {"replicas": len(made), "updateRevision": f"{name_of(item)}-{revision}"}
        status["currentRevision"] = status["updateRevision"] if all_new or not former else former
        status |= {"currentReplicas": updated if all_new else len(made) - updated, "updatedReplicas": updated}
        self.note(item, status | {"readyReplicas": ready, "availableReplicas": ready, "collisionCount": 0})


def ordered_pod(item: Object, number: int) -> Object:
    pod = new_pod(item, str(number))
    name = name_of(pod)
    marked(pod, {HASH: _revision(item), _INDEX: str(number), _NAME: name})
    pod["spec"] |= {"hostname": name, "subdomain": item["spec"].get("serviceName") or ""}
    claims = [name_of(template) for template in item["spec"].get("volumeClaimTemplates") or []]
    others = [found for found in pod["spec"].get("volumes") or [] if found.get("name") not in claims]
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims]
    if volumes or others:
        pod["spec"]["volumes"] = [*volumes, *others]
    pod["metadata"]["ownerReferences"] = [owner_reference(item)]
    return pod


def _revision(item: Object) -> str:
    return fingerprint(item["spec"]["template"])


def _ordinal(pod: Object) -> tuple[int, str]:
    end = name_of(pod).rpartition("-")[2]
    return (int(end) if end.isdecimal() else -1), name_of(pod)

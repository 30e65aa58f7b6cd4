"""The ReplicaSet controller: the wanted number of pods; a leaving pod is replaced at once."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.workloads import Workloads, new_pod
from vgpuctl.sim.kube.objects import Object, is_active, is_true, name_of


class ReplicaSets(Workloads):
    kind, plural = "ReplicaSet", "replicasets"

    def reconcile(self, item: Object) -> None:
        active = [pod for pod in self.owned_objects(item) if is_active(pod)]
        # Kubernetes: a leaving pod is not active, so its replacement is made at once.
        missing = item["spec"]["replicas"] - len(active)
        for _ in range(missing):
            self.create_pod(item, new_pod(item, self._store.suffix()))
        for pod in sorted(active, key=_deletion_order)[:-missing] if missing < 0 else ():
            self.delete_pod(item, pod)
        ready = sum(is_true(pod, "Ready") for pod in active)
        status: Object = {"replicas": len(active), "fullyLabeledReplicas": len(active)}
        self.set_status(item, status | ({"readyReplicas": ready, "availableReplicas": ready} if ready else {}))


def _deletion_order(pod: Object) -> tuple[bool, bool, str, str]:
    """Sort surplus pods: unbound first, then not ready, then the youngest."""
    # Kubernetes: ActivePodsWithRanks has more ranks, such as a deletion cost. They are not simulated.
    made = str(pod["metadata"]["creationTimestamp"])
    youngest_first = "".join(chr(255 - ord(letter)) for letter in made)
    return bool(pod["spec"].get("nodeName")), is_true(pod, "Ready"), youngest_first, name_of(pod)

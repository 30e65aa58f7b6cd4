"""ReplicaSets: so many pods as are wished for, replaced the moment one is leaving."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.workloads import Workloads, new_pod
from vgpuctl.sim.kube.objects import Object, is_active, is_true, name_of


class ReplicaSets(Workloads):
    kind, plural = "ReplicaSet", "replicasets"

    def tend(self, item: Object) -> None:
        active = [pod for pod in self.possessions(item) if is_active(pod)]
        missing = item["spec"]["replicas"] - len(active)
        for _ in range(missing):
            self.add(item, new_pod(item, self._store.suffix()))
        for pod in sorted(active, key=_worth)[:-missing] if missing < 0 else ():
            self.drop(item, pod)
        ready = sum(is_true(pod, "Ready") for pod in active)
        status: Object = {"replicas": len(active), "fullyLabeledReplicas": len(active)}
        self.note(item, status | ({"readyReplicas": ready, "availableReplicas": ready} if ready else {}))


def _worth(pod: Object) -> tuple[bool, bool, str, str]:
    """Which pods go first when there are too many: unbound, then unready, then the youngest."""
    made = str(pod["metadata"]["creationTimestamp"])
    youngest_first = "".join(chr(255 - ord(letter)) for letter in made)
    return bool(pod["spec"].get("nodeName")), is_true(pod, "Ready"), youngest_first, name_of(pod)

"""What the controllers of workloads have in common: their objects, their queue, and how they create and delete pods."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from typing import ClassVar

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.controllers.queue import REACTION_S, Queue
from vgpuctl.sim.kube.objects import (
    Object,
    controller_of,
    copied,
    is_leaving,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from vgpuctl.sim.kube.store import OWNER, SAFE_CHARACTERS, Change, Key, key_of, path_of


class Workloads(ABC):
    """Reconciles a workload when it, or an object that it owns, has changed."""

    kind: ClassVar[str]
    plural: ClassVar[str]
    owned: ClassVar[str] = "pods"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._store = context.store
        self._event_source = EventSource(f"{self.kind.lower()}-controller")
        self._queue = Queue(context.clock, self._reconcile, REACTION_S)
        context.store.subscribe([self.plural], lambda change: self._queue.add(key_of(change.object)))
        context.store.subscribe([self.owned], self._owned_changed)

    @abstractmethod
    def reconcile(self, item: Object) -> None:
        """Bring the owned objects one step nearer to the spec, and update the status."""

    def owned_objects(self, item: Object) -> list[Object]:
        """Return the owned objects, unsorted."""
        return self._store.unordered(self.owned, OWNER, uid_of(item))

    def set_status(self, item: Object, status: Object) -> None:
        """Replace the workload's status. Conditions that other controllers set stay."""

        def write(present: Object) -> None:
            conditions = {"conditions": found} if (found := (present.get("status") or {}).get("conditions")) else {}
            present["status"] = {"observedGeneration": item["metadata"]["generation"]} | conditions | status

        self._store.edit(*path_of(self.plural, item), write)

    def create_pod(self, item: Object, pod: Object) -> None:
        if self._store.get(*path_of("pods", pod)) is None:
            self._context.create("pods", pod)
            self._context.record_event(item, self._event_source, "SuccessfulCreate", f"Created pod: {name_of(pod)}")

    def delete_pod(self, item: Object, pod: Object) -> None:
        self._context.delete("pods", pod)
        self._context.record_event(item, self._event_source, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    def _reconcile(self, key: Key) -> None:
        item = self._store.get(self.plural, *key)
        # Kubernetes: a workload that is being deleted makes no new pods.
        if item is not None and not is_leaving(item):
            self.reconcile(item)

    def _owned_changed(self, change: Change) -> None:
        owner = controller_of(change.object)
        if owner is not None and owner["kind"] == self.kind:
            self._queue.add((namespace_of(change.object), owner["name"]))


def new_pod(owner: Object, suffix: str) -> Object:
    """Return a pod made from the owner's template."""
    template = copied(owner["spec"]["template"])
    template_metadata, name = template.get("metadata") or {}, name_of(owner)
    metadata = {
        part: template_metadata[part] for part in ("labels", "annotations", "finalizers") if template_metadata.get(part)
    }
    metadata |= {"name": f"{name}-{suffix}", "generateName": f"{name}-", "namespace": namespace_of(owner)}
    metadata["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {"containers": []}}


def add_labels(template: Object, mark: dict[str, str]) -> None:
    """Add labels to a pod template, or to a pod."""
    metadata = template["metadata"] = template.get("metadata") or {}
    metadata["labels"] = (metadata.get("labels") or {}) | mark


def template_hash(template: Object) -> str:
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    # Kubernetes: hashes of templates use the same characters as generated names.
    return "".join(SAFE_CHARACTERS[byte % len(SAFE_CHARACTERS)] for byte in digest[:9])

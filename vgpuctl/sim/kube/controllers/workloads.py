"""What all controllers of workloads have in common: whom they own, and when they look again."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from typing import ClassVar

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, Teller
from vgpuctl.sim.kube.controllers.queue import HEARD_AFTER_S, Queue
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
    """Looks at a workload again when it, or something that it owns, has changed."""

    kind: ClassVar[str]
    plural: ClassVar[str]
    owned: ClassVar[str] = "pods"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._store = context.store
        self._teller = Teller(f"{self.kind.lower()}-controller")
        self._queue = Queue(context.clock, self._look_at, HEARD_AFTER_S)
        context.store.subscribe([self.plural], lambda change: self._queue.add(key_of(change.object)))
        context.store.subscribe([self.owned], self._owned_changed)

    @abstractmethod
    def tend(self, item: Object) -> None:
        """Bring what it owns one step nearer to what it wishes, and count."""

    def possessions(self, item: Object) -> list[Object]:
        """In no order that means something."""
        return self._store.some(self.owned, OWNER, uid_of(item))

    def note(self, item: Object, status: Object) -> None:
        """The workload's new status; the conditions that others gave it stay."""

        def write(present: Object) -> None:
            kept = {"conditions": found} if (found := (present.get("status") or {}).get("conditions")) else {}
            present["status"] = {"observedGeneration": item["metadata"]["generation"]} | kept | status

        self._store.edit(*path_of(self.plural, item), write)

    def add(self, item: Object, pod: Object) -> None:
        if self._store.get(*path_of("pods", pod)) is None:
            self._context.create("pods", pod)
            self._context.tell(item, self._teller, "SuccessfulCreate", f"Created pod: {name_of(pod)}")

    def drop(self, item: Object, pod: Object) -> None:
        self._context.delete("pods", pod)
        self._context.tell(item, self._teller, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    def _look_at(self, key: Key) -> None:
        item = self._store.get(self.plural, *key)
        if item is not None and not is_leaving(item):
            self.tend(item)

    def _owned_changed(self, change: Change) -> None:
        owner = controller_of(change.object)
        if owner is not None and owner["kind"] == self.kind:
            self._queue.add((namespace_of(change.object), owner["name"]))


def new_pod(owner: Object, suffix: str) -> Object:
    """A pod of the owner's template."""
    template = copied(owner["spec"]["template"])
    given, name = template.get("metadata") or {}, name_of(owner)
    metadata = {part: given[part] for part in ("labels", "annotations", "finalizers") if given.get(part)}
    metadata |= {"name": f"{name}-{suffix}", "generateName": f"{name}-", "namespace": namespace_of(owner)}
    metadata["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {"containers": []}}


def marked(template: Object, mark: dict[str, str]) -> None:
    """Put a label on all pods of a template, or on one pod."""
    metadata = template["metadata"] = template.get("metadata") or {}
    metadata["labels"] = (metadata.get("labels") or {}) | mark


def fingerprint(template: Object) -> str:
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    return "".join(SAFE_CHARACTERS[byte % len(SAFE_CHARACTERS)] for byte in digest[:9])

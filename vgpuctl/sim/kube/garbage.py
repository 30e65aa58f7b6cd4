"""What goes when something else went: dependents of deleted owners, contents of deleted namespaces."""

from __future__ import annotations

from vgpuctl.sim.kube.ground import Ground
from vgpuctl.sim.kube.kinds import STORED
from vgpuctl.sim.kube.objects import Object, is_leaving, uid_of
from vgpuctl.sim.kube.queue import Queue
from vgpuctl.sim.kube.store import OWNER, Change, Key, key_of

_OWNERS = ("nodes", "deployments", "replicasets", "daemonsets", "statefulsets", "jobs", "pods")
_DEPENDENTS = ("leases", "replicasets", "jobs", "pods", "configmaps")


class GarbageCollector:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._orphaned = Queue(ground.clock, self._collect)
        self._ending = Queue(ground.clock, self._empty)
        ground.store.subscribe(_OWNERS, self._owner_changed)
        ground.store.subscribe(STORED, self._content_changed)

    def _owner_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._orphaned.add(("", uid_of(change.object)))

    def _collect(self, key: Key) -> None:
        for plural in _DEPENDENTS:
            for item in self._ground.store.where(plural, OWNER, key[1]):
                self._ground.delete(plural, item)

    def _content_changed(self, change: Change) -> None:
        if change.plural == "namespaces":
            name = change.object["metadata"]["name"]
        elif change.type in ("DELETED", "ADDED"):
            name = change.object["metadata"].get("namespace", "")
        else:
            return
        namespace = self._ground.store.get("namespaces", "", name)
        if namespace is not None and is_leaving(namespace):
            self._ending.add(key_of(namespace))

    def _empty(self, key: Key) -> None:
        """A namespace that is leaving goes when nothing is left in it."""
        name, left = key[1], False
        for plural, kind in STORED.items():
            if kind.namespaced:
                items = self._ground.store.sorted(plural, name)
                left = left or bool(items)
                for item in items:
                    if not is_leaving(item):
                        self._ground.delete(plural, item)
        if not left:
            self._ground.store.edit("namespaces", *key, _release)
            self._ground.store.remove("namespaces", *key)


def _release(namespace: Object) -> None:
    namespace["spec"] = {}

"""The garbage collector: dependents of deleted owners, and the contents of deleted namespaces."""

from __future__ import annotations

from vgpuctl.sim.kube.api.kinds import STORED
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.objects import Object, is_leaving, uid_of
from vgpuctl.sim.kube.store import OWNER, Change, Key, key_of

_OWNERS = ("nodes", "deployments", "replicasets", "daemonsets", "statefulsets", "jobs", "pods")
#: A cluster has more kinds with owners. These are those that the simulated owners have.
_DEPENDENTS = ("leases", "replicasets", "jobs", "pods", "configmaps")


class GarbageCollector:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._orphaned = Queue(context.clock, self._delete_dependents)
        self._terminating = Queue(context.clock, self._delete_contents)
        context.store.subscribe(_OWNERS, self._owner_changed)
        context.store.subscribe(STORED, self._content_changed)

    def _owner_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self._orphaned.add(("", uid_of(change.object)))

    def _delete_dependents(self, key: Key) -> None:
        for plural in _DEPENDENTS:
            # Kubernetes: background deletion: the owner goes first, its dependents follow.
            for item in self._context.store.where(plural, OWNER, key[1]):
                self._context.delete(plural, item)

    def _content_changed(self, change: Change) -> None:
        if change.plural == "namespaces":
            name = change.object["metadata"]["name"]
        elif change.type in ("DELETED", "ADDED"):
            name = change.object["metadata"].get("namespace", "")
        else:
            return
        namespace = self._context.store.get("namespaces", "", name)
        if namespace is not None and is_leaving(namespace):
            self._terminating.add(key_of(namespace))

    def _delete_contents(self, key: Key) -> None:
        """Delete everything in a terminating namespace, then the namespace."""
        name, left = key[1], False
        for plural, kind in STORED.items():
            if kind.namespaced:
                items = self._context.store.sorted(plural, name)
                left = left or bool(items)
                for item in items:
                    # Kubernetes: pods get their grace period here, too, so a namespace may take long to end.
                    if not is_leaving(item):
                        self._context.delete(plural, item)
        if not left:
            self._context.store.edit("namespaces", *key, _release)
            self._context.store.remove("namespaces", *key)


def _release(namespace: Object) -> None:
    namespace["spec"] = {}

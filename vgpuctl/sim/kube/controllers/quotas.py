"""Counts ResourceQuotas: pods, and what they request of extended resources. Nothing is enforced."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.objects import Object, at, is_finished, namespace_of, requests_of
from vgpuctl.sim.kube.store import Change, Key, key_of

_PREFIX = "requests."


class Quotas:
    def __init__(self, context: ControllerContext) -> None:
        self._store = context.store
        self._queue = Queue(context.clock, self._reconcile)
        context.store.subscribe(["resourcequotas"], lambda change: self._queue.add(key_of(change.object)))
        context.store.subscribe(["pods"], self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        """A pod's requests never change, so only a new, finished or deleted pod matters."""
        if change.before is not None and change.type == "MODIFIED" and _counts_the_same(change.before, change.object):
            return
        for quota in self._store.sorted("resourcequotas", namespace_of(change.object)):
            self._queue.add(key_of(quota))

    def _reconcile(self, key: Key) -> None:
        quota = self._store.get("resourcequotas", *key)
        if quota is None:
            return
        hard = at(quota, "spec.hard") or {}
        # Kubernetes: a Pending pod counts, a finished one does not.
        # So pods for tonight's profile hold their namespace's quota all day.
        requests = [requests_of(pod) for pod in self._store.sorted("pods", key[0]) if not is_finished(pod)]
        # Kubernetes: extended resources have no limits of their own, only `requests.`.
        used = {name: _total(name, requests) for name in hard if name == "pods" or _is_extended(name)}

        def count(item: Object) -> None:
            item["status"] = {"hard": {name: str(most) for name, most in hard.items()}, "used": used}

        self._store.edit("resourcequotas", *key, count)


def _counts_the_same(before: Object, after: Object) -> bool:
    return is_finished(before) == is_finished(after)


def _is_extended(name: str) -> bool:
    return name.startswith(_PREFIX) and "/" in name


def _total(name: str, requests: list[dict[str, float]]) -> str:
    return str(round(sum(each.get(name.removeprefix(_PREFIX), 0.0) for each in requests)))

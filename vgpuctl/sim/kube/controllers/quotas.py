"""ResourceQuotas are counted, not enforced: pods, and what these ask of extended resources."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.objects import Object, at, is_finished, namespace_of, requests_of
from vgpuctl.sim.kube.store import Change, Key, key_of

_ASKED = "requests."


class Quotas:
    def __init__(self, context: ControllerContext) -> None:
        self._store = context.store
        self._queue = Queue(context.clock, self._look_at)
        context.store.subscribe(["resourcequotas"], lambda change: self._queue.add(key_of(change.object)))
        context.store.subscribe(["pods"], self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        """What a pod asks for never changes: only that it comes, ends or goes."""
        if change.before is not None and change.type == "MODIFIED" and _counts_alike(change.before, change.object):
            return
        for quota in self._store.sorted("resourcequotas", namespace_of(change.object)):
            self._queue.add(key_of(quota))

    def _look_at(self, key: Key) -> None:
        quota = self._store.get("resourcequotas", *key)
        if quota is None:
            return
        hard = at(quota, "spec.hard") or {}
        asked = [requests_of(pod) for pod in self._store.sorted("pods", key[0]) if not is_finished(pod)]
        used = {name: _total(name, asked) for name in hard if name == "pods" or _extended(name)}

        def count(item: Object) -> None:
            item["status"] = {"hard": {name: str(most) for name, most in hard.items()}, "used": used}

        self._store.edit("resourcequotas", *key, count)


def _counts_alike(before: Object, after: Object) -> bool:
    return is_finished(before) == is_finished(after)


def _extended(name: str) -> bool:
    return name.startswith(_ASKED) and "/" in name


def _total(name: str, asked: list[dict[str, float]]) -> str:
    return str(round(sum(each.get(name.removeprefix(_ASKED), 0.0) for each in asked)))

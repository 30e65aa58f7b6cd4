"""Watches: the changes of the objects that a request selects, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from vgpuctl.sim.clock import Timer, do_nothing
from vgpuctl.sim.kube.api import events, reading
from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.api.request import Request, Target
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.objects import Object
from vgpuctl.sim.kube.store import Change

#: kube-apiserver: a bookmark about once a minute.
BOOKMARK_S = 60.0
_END_OF_INITIAL = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class WatchEvent:
    type: str
    object: Object

    @property
    def is_object(self) -> bool:
        return self.type in ("ADDED", "MODIFIED", "DELETED")


class Watch:
    """Holds events until they are taken. It calls `on_event` when there is an event to take, or the watch has ended."""

    def __init__(self, context: ControllerContext, request: Request, target: Target) -> None:
        self.request = request
        self.target = target
        self.ended = False
        self.on_event: Callable[[], None] = do_nothing
        self._context = context
        self._pending: deque[WatchEvent] = deque()
        self._test = reading.test_of(request, target)
        self._timers: list[Timer] = []
        self._bookmarks = request.flag("allowWatchBookmarks")
        self._unsubscribe: Callable[[], None] = do_nothing
        self._start()

    def take(self) -> list[WatchEvent]:
        taken = list(self._pending)
        self._pending.clear()
        return taken

    def close(self) -> None:
        self.ended = True
        self._unsubscribe()
        for timer in self._timers:
            timer.cancel()
        self.on_event()

    def _start(self) -> None:
        version = reading.requested_version(self.request)
        limit_s = self.request.number("timeoutSeconds")
        try:
            self._catch_up(version)
        except ApiError as error:
            # Measured: kube-apiserver 1.36 says 410 inside the watch, as its only event.
            self._pending.append(WatchEvent("ERROR", error.status()))
            self.ended = True
            return
        self._unsubscribe = self._context.store.subscribe([self.target.kind.plural], self._on_change)
        if limit_s:
            self._timers.append(self._context.clock.after(limit_s, self._on_timeout))
        if self._bookmarks:
            self._timers.append(self._context.clock.after(BOOKMARK_S, self._send_bookmark))

    def _catch_up(self, version: int) -> None:
        store, plural = self._context.store, self.target.kind.plural
        initial = self.request.flag("sendInitialEvents")
        # Measured: without a version, kube-apiserver 1.36 begins with everything that is there.
        if version and not initial:
            for change in store.changes_since(plural, version):
                self._on_change(change)
            return
        for item in reading.matching(store, self.request, self.target):
            self._add("ADDED", item)
        # Measured: with sendInitialEvents, kube-apiserver 1.36 ends the beginning with this bookmark.
        if initial and self._bookmarks:
            self._bookmark(_END_OF_INITIAL)

    def _on_change(self, change: Change) -> None:
        # Kubernetes: the last state decides whether a watch with a selector hears of a deletion.
        if change.type == "DELETED":
            if self._test(change.before or change.object):
                self._add("DELETED", change.object)
            return
        # Measured: to a watch with a selector, an object that begins to match is ADDED, one that ceases is DELETED.
        matched = change.before is not None and self._test(change.before)
        matches = self._test(change.object)
        if matches:
            self._add("MODIFIED" if matched else "ADDED", change.object)
        elif matched and change.before is not None:
            self._add("DELETED", _last_match(change.before, change.version))

    def _add(self, kind: str, item: Object) -> None:
        self._pending.append(WatchEvent(kind, events.shown(self.target.kind, item)))
        self.on_event()

    def _bookmark(self, annotations: dict[str, str] | None = None) -> None:
        metadata: Object = {"resourceVersion": str(self._context.store.version)}
        if annotations:
            metadata["annotations"] = annotations
        kind = self.target.kind
        self._pending.append(
            WatchEvent("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata})
        )
        self.on_event()

    def _send_bookmark(self) -> None:
        self._bookmark()
        self._timers[-1] = self._context.clock.after(BOOKMARK_S, self._send_bookmark)

    def _on_timeout(self) -> None:
        # Kubernetes: so the next watch can go on from here, even if nothing has happened for long.
        if self._bookmarks:
            self._bookmark()
        self.close()


def _last_match(before: Object, version: int) -> Object:
    """Return the object as the watch last selected it, with the version of the change that took it away."""
    # Measured: kube-apiserver 1.36 sends the former labels and data here, so a client finds the object in its index.
    return before | {"metadata": before["metadata"] | {"resourceVersion": str(version)}}

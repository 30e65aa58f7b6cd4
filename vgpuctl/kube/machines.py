"""The Machines of Cluster API: fetched only once a node names one, and skipped if we may not mark them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from vgpuctl.kube import views
from vgpuctl.kube.client import Client, NotAllowedError, NotFoundError
from vgpuctl.kube.permissions import Permission, may
from vgpuctl.kube.reflector import WATCH_S, Kind, Reflector

_GROUP = "cluster.x-k8s.io"
_MARKING = Permission(verb="patch", group=_GROUP, resource="machines")


class Machines(Reflector):
    """The Machines that nodes name.

    Empty until a node names one, and if we cannot see and mark Machines. They may be in another cluster, or our account
    may lack the right; both are checked again from time to time.
    """

    def __init__(self, client: Client, on_change: Callable[[], None]) -> None:
        super().__init__(client, Kind("machines", _unseen), on_change)
        self._wanted = self._following = self._disabled = False
        self._begun = threading.Lock()
        self._mark_heard()

    def noticing_names(self, nodes: Kind) -> Kind:
        """Return the same kind, with a view that also notices nodes that name a Machine."""

        def view(raw: Any) -> Any:
            seen = nodes.view(raw)
            if seen.node.machine and not self._wanted:
                self._want()
            return seen

        return nodes._replace(view=view)

    def _want(self) -> None:
        # Decision 0014: Machines are listed only once a node names one. Other estates pay no call and need no right.
        self._wanted, self.heard, self.silence = True, False, "they are being read"
        self._begin()

    def follow(self) -> None:
        self._following = True
        self._begin()

    def _begin(self) -> None:
        """Begin to follow, once, when a follower and a named Machine are both there."""
        if self._wanted and self._following and self._begun.acquire(blocking=False):
            super().follow()

    def disable(self) -> None:
        self._disabled = True
        self._on_change()

    def objects(self) -> list[Any]:
        return [] if self._disabled else super().objects()

    def fill(self) -> None:
        """List Machines in the version that this server prefers.

        Cluster API changes it every few years, also while we run.
        """
        if not self._wanted:
            return
        try:
            version = self._preferred(self._client.get(f"/apis/{_GROUP}"))
            at = f"/apis/{_GROUP}/{version}"
            self._path, self._view = f"{at}/machines", partial(views.machine, at=at)
            super().fill()
            # Decision 0014: if marks may never be set, the plan says so and the switch goes on without them.
            self._disabled = not may(self._client, _MARKING)
        except (NotAllowedError, NotFoundError):
            self._disabled = True
        self._mark_heard()

    def _preferred(self, group: Any) -> str:
        try:
            return str(group["preferredVersion"]["version"])
        except (KeyError, TypeError) as error:
            raise self._client.garbled(f"its group {_GROUP} has no version") from error

    def _watch(self) -> None:
        if not self._disabled:
            super()._watch()
        elif not self._closed.wait(WATCH_S):
            self.fill()
            self._on_change()


def _unseen(raw: Any) -> Any:
    raise LookupError(f"the path of {raw['metadata']['name']} is not known yet")

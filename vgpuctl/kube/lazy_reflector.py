"""Objects that no decision depends on: fetched when they are first wanted, then kept up to date like the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vgpuctl.kube import views
from vgpuctl.kube.client import Client, NotAllowedError, NotFoundError
from vgpuctl.kube.reflector import Kind, Reflector
from vgpuctl.model.errors import VgpuctlError

#: Kubernetes: pods that wait all day hold their namespace's GPU quota, and people ask why.
QUOTAS = Kind("/api/v1/resourcequotas", views.quota)
#: kubernetes#117658, measured: with maxUnavailable 1, one sleeping node kept all awake ones from an update.
ROLLOUTS = Kind("/apis/apps/v1/daemonsets", views.rollout)


class LazyReflector:
    """All objects of one kind. If the server denies us access, it is not asked again."""

    def __init__(self, client: Client, kind: Kind, on_change: Callable[[], None]) -> None:
        self._reflector = Reflector(client, kind, on_change)
        self._tried = False

    def objects(self, *, follow: bool) -> list[Any] | None:
        """Return the objects; None if they cannot be seen.

        `follow`: watch from now on, even if they cannot be seen yet.
        """
        if not self._tried:
            self._tried = True
            self._fill(follow=follow)
        return [each for each in self._reflector.objects() if each is not None] if self._reflector.heard else None

    def _fill(self, *, follow: bool) -> None:
        try:
            self._reflector.fill()
        except (NotAllowedError, NotFoundError):
            return
        except VgpuctlError as error:
            if not error.passing:
                return
        if follow:
            self._reflector.follow()

    def close(self) -> None:
        self._reflector.close()

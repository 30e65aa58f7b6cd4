"""ResourceQuotas that count GPUs: asked for only when somebody wants to know, then kept like everything else."""

from __future__ import annotations

from collections.abc import Callable

from vgpuctl.kube import views
from vgpuctl.kube.client import Client
from vgpuctl.kube.stream import Kind, Shelf
from vgpuctl.model.errors import VgpuctlError
from vgpuctl.model.pods import Quota

KIND = Kind("/api/v1/resourcequotas", views.quota)


class Quotas:
    """A server that does not let us see them is not asked again: nothing stands on them."""

    def __init__(self, client: Client, on_change: Callable[[], None]) -> None:
        self._shelf = Shelf(client, KIND, on_change)
        self._asked = self._seen = False

    def seen(self, *, follow: bool) -> list[Quota] | None:
        """None where they cannot be seen."""
        if not self._asked:
            self._asked = True
            self._ask(follow=follow)
        return [quota for quota in self._shelf.objects() if quota is not None] if self._seen else None

    def _ask(self, *, follow: bool) -> None:
        try:
            self._shelf.fill()
        except VgpuctlError:
            return
        self._seen = True
        if follow:
            self._shelf.follow()

    def close(self) -> None:
        self._shelf.close()

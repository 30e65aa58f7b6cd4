"""Lists in pages: all pages of one list show the same moment, however much changes between them."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.kube.api import errors
from vgpuctl.sim.kube.objects import Object
from vgpuctl.sim.kube.store import Key, Store, key_of

# As long as etcd keeps the past in a usual cluster.
KEPT_S = 300.0
_MOST = 50


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What matched at one version."""

    version: int
    items: list[Object]
    since_s: float


class Pages:
    """The snapshots that somebody may still ask the rest of."""

    def __init__(self, clock: Clock, store: Store) -> None:
        self._clock = clock
        self._store = store
        self._kept: dict[tuple[int, str], Snapshot] = {}

    def begin(self, version: int, asked: str, items: list[Object]) -> None:
        self._kept[version, asked] = Snapshot(version, items, self._clock.now_s)
        old = [key for key, kept in self._kept.items() if self._clock.now_s - kept.since_s > KEPT_S]
        for key in old or list(self._kept)[:-_MOST]:
            del self._kept[key]

    def rest(self, token: str, asked: str) -> tuple[Snapshot, int]:
        """The snapshot that the token speaks of, and how many of it were shown."""
        version, after = _read(token)
        kept = self._kept.get((version, asked))
        if kept is None or version < self._store.compacted or self._clock.now_s - kept.since_s > KEPT_S:
            raise errors.continue_expired()
        return kept, sum(key_of(item) <= after for item in kept.items)


def token_of(version: int, last: Object) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, *key_of(last)]).encode()).decode()


def _read(token: str) -> tuple[int, Key]:
    try:
        version, namespace, name = json.loads(base64.urlsafe_b64decode(token))
        return int(version), (str(namespace), str(name))
    except (ValueError, TypeError, RecursionError, OverflowError):
        raise errors.bad_request("invalid continue token: continue key is not valid") from None

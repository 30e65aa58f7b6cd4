"""Lists in pages. All pages of one list show the same moment, whatever changes in between."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.kube.api import errors
from vgpuctl.sim.kube.objects import Object
from vgpuctl.sim.kube.store import Key, Store, key_of

# How long etcd keeps old versions in a usual cluster.
# kube-apiserver: `--etcd-compaction-interval` is five minutes by default.
RETENTION_S = 300.0
_MAX_SNAPSHOTS = 50


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects that matched at one version."""

    version: int
    items: list[Object]
    since_s: float


class Pages:
    """The snapshots whose remaining pages a client may still request."""

    def __init__(self, clock: Clock, store: Store) -> None:
        self._clock = clock
        self._store = store
        self._snapshots: dict[tuple[int, str], Snapshot] = {}

    def add_snapshot(self, version: int, query: str, items: list[Object]) -> None:
        self._snapshots[version, query] = Snapshot(version, items, self._clock.now_s)
        old = [key for key, snapshot in self._snapshots.items() if self._clock.now_s - snapshot.since_s > RETENTION_S]
        for key in old or list(self._snapshots)[:-_MAX_SNAPSHOTS]:
            del self._snapshots[key]

    def remainder(self, token: str, query: str) -> tuple[Snapshot, int]:
        """Return the token's snapshot, and how many of its objects were sent already."""
        version, after = _read(token)
        snapshot = self._snapshots.get((version, query))
        if snapshot is None or version < self._store.compacted or self._clock.now_s - snapshot.since_s > RETENTION_S:
            # Kubernetes: 410 Expired. The client must list again from the beginning.
            raise errors.continue_expired()
        return snapshot, sum(key_of(item) <= after for item in snapshot.items)


def token_of(version: int, last: Object) -> str:
    return base64.urlsafe_b64encode(json.dumps([version, *key_of(last)]).encode()).decode()


def _read(token: str) -> tuple[int, Key]:
    try:
        version, namespace, name = json.loads(base64.urlsafe_b64decode(token))
        return int(version), (str(namespace), str(name))
    except (ValueError, TypeError, RecursionError, OverflowError):
        # Measured: kube-apiserver 1.36 answers 400 to a token that is none.
        raise errors.bad_request("invalid continue token: continue key is not valid") from None

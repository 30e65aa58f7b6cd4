"""The document of `vgpuctl status -o json`, made from the daemon's own picture."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from vgpuctl.files import Files
from vgpuctl.model.fleet import Fleet
from vgpuctl.planning.selection import Selection
from vgpuctl.reporting.situation import situate
from vgpuctl.reporting.status_document import document

#: How long a document is served again. In a large estate it is served for four times as long as it took to make:
#: readers must not take the processor from a switch.
FRESH_S, REST = 1.0, 4

Document = dict[str, Any]


class Pictured(Protocol):
    def fleet(self) -> Fleet: ...


class StatusDocuments:
    """Makes the document at most once a second, however many readers ask. It asks no server.

    Quotas and rollouts are asked for by `vgpuctl status` alone: `quotas` is null here.
    """

    def __init__(self, now: Callable[[], datetime], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._now, self._monotonic = now, monotonic
        self._lock = threading.Lock()
        self._connection: Pictured | None = None
        self._files: Callable[[], Files] | None = None
        self._silent: dict[str, datetime] = {}
        self._made: Document | None = None
        self._fresh_until_s = 0.0

    def connect(self, connection: Pictured, files: Callable[[], Files]) -> None:
        """Look at this picture from now on, by the files in force."""
        self._connection, self._files = connection, files

    def current(self) -> Document | None:
        """Return the document; None before the first picture."""
        if self._connection is None or self._files is None:
            return None
        with self._lock:
            began_s = self._monotonic()
            if self._made is None or began_s >= self._fresh_until_s:
                self._made = self._make(self._connection.fleet(), self._files())
                ended_s = self._monotonic()
                self._fresh_until_s = ended_s + max(FRESH_S, REST * (ended_s - began_s))
            return self._made

    def _make(self, fleet: Fleet, files: Files) -> Document:
        now = self._now()
        self._silent = {name: self._silent.get(name, now) for name in fleet.stale}
        seen = situate(fleet, files.catalogue, files.timetables.values(), Selection(), now)
        return document(replace(seen.with_quotas(None), stale=self._silent))


def as_body(answer: Document) -> bytes:
    # Escaped as ASCII, a text of a stranger cannot turn or break what a terminal shows.
    return (json.dumps(answer, indent=2) + "\n").encode()

"""A thread that keeps a copy of a server's state. After a failure it reports why it is not heard, and begins again."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress

from vgpuctl.model.errors import VgpuctlError, in_short
from vgpuctl.wire.retries import GrowingPauses


# Decision 0018. Before, only our own errors were caught: any other end left a copy that counted as true for ever.
class Follower(ABC):
    """Keeps a copy up to date. `heard`: the copy is true now. `silence`: why not. `following`: the thread runs."""

    def __init__(self, name: str, on_change: Callable[[], None]) -> None:
        self._name, self._on_change = name, on_change
        self._closed = threading.Event()
        self._pauses = GrowingPauses()
        self._heard_s = 0.0
        self.heard = self.following = False
        self.silence = ""

    def follow(self) -> None:
        """Start the thread that listens for changes."""
        self.following = True
        threading.Thread(target=self._keep_listening, name=self._name, daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    @abstractmethod
    def _listen(self) -> None:
        """Fill the copy if it is not heard, then take in changes for a while. Called again and again."""

    def _mark_heard(self) -> None:
        self.heard, self.silence, self._heard_s = True, "", time.monotonic()

    def _keep_listening(self) -> None:
        while not self._closed.is_set():
            try:
                self._listen()
            # If our own mistake ended the thread, its old copy would count as true.
            except Exception as error:
                self._closed.wait(self._mark_silent(error))

    def _mark_silent(self, error: Exception) -> float:
        """Note the failure, and return the pause before the next try."""
        worked_s = time.monotonic() - self._heard_s if self.heard else 0.0
        self.heard, self.silence = False, in_short(error)
        with suppress(Exception):
            # A listener that fails must not end the stream.
            self._on_change()
        asked_s = error.after_s if isinstance(error, VgpuctlError) else 0.0
        return self._pauses.after_failure(worked_s, asked_s)

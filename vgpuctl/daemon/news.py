"""Says each thing once: a line that is repeated at each look would hide the lines that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

#: What lasts is said again from time to time, for people that read only today's log.
AGAIN_AFTER = timedelta(hours=6)
MOST_KEPT = 10_000


class News:
    """Says a text when its topic has something new to say."""

    def __init__(self, say: Callable[[str], None], now: Callable[[], datetime]) -> None:
        self._say, self._now = say, now
        self._told: dict[str, dict[str, datetime]] = {}

    def tell(self, topic: str, texts: Iterable[tuple[str, str]]) -> None:
        """Say the texts of a topic whose keys are new in it. What is no longer told may be news again later."""
        now, before = self._now(), self._told.get(topic, {})
        told: dict[str, datetime] = {}
        for key, text in texts:
            last = before.get(key)
            if last is None or now - last >= AGAIN_AFTER:
                self._say(text)
                last = now
            told[key] = last
        self._told = {**dict(list(self._told.items())[-MOST_KEPT:]), topic: told}

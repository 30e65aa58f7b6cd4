"""Events of a watch, and several of them shown as one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

#: What remains of two events of an object, if only the last state is shown.
_TOGETHER = {
    ("ADDED", "MODIFIED"): "ADDED",
    # A list in between may have shown the object, so that it goes must be said.
    ("ADDED", "DELETED"): "DELETED",
    ("MODIFIED", "MODIFIED"): "MODIFIED",
    ("MODIFIED", "DELETED"): "DELETED",
    ("DELETED", "ADDED"): "MODIFIED",
}


class Event:
    """One line of a watch."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self._document: Any = None

    @classmethod
    def gone(cls) -> Event:
        """What Kubernetes says to a watch from before its compaction."""
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
        return cls(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")

    @property
    def kind(self) -> str:
        return str(self._read["type"])

    @property
    def name(self) -> str:
        meta = self._read["object"].get("metadata", {})
        return f"{meta.get('namespace', '')}/{meta.get('name', '')}"

    def told_as(self, kind: str) -> Event:
        return Event(json.dumps({**self._read, "type": kind}).encode() + b"\n")

    @property
    def _read(self) -> Any:
        if self._document is None:
            self._document = json.loads(self.line)
        return self._document


class Window:
    """While it is open, events are held. Of two of one object only the last is shown, and the order stays."""

    def __init__(self) -> None:
        self.is_open = False
        self._held: list[Event] = []

    def open(self) -> None:
        self.is_open = True

    def takes(self, event: Event) -> bool:
        """Hold the event. True if an earlier state of its object will never be shown."""
        before = next((each for each in self._held if each.name == event.name), None)
        together = _TOGETHER.get((before.kind, event.kind)) if before else None
        if before is None or together is None:
            self._held.append(event)
            return False
        self._held.remove(before)
        self._held.append(event.told_as(together))
        return True

    def shut(self) -> Iterator[bytes]:
        self.is_open, held, self._held = False, self._held, []
        return (each.line for each in held)

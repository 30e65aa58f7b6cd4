"""Objects of the servers that cannot be read. Each is left out of the picture by itself, and reported."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """One object that is left out. `name`: as people write it. `node`: for a pod, the node that it runs on."""

    kind: str
    name: str
    why: str
    node: str = ""

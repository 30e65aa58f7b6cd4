"""What the clients asked for: counted by server and method, never the world's own doings."""

from __future__ import annotations

from collections import Counter


class Calls:
    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def count(self, server: str, method: str) -> None:
        self._counts.setdefault(server, Counter())[method] += 1

    def as_dict(self) -> dict[str, dict[str, int]]:
        return {server: dict(sorted(methods.items())) for server, methods in sorted(self._counts.items())}

    def reset(self) -> None:
        self._counts.clear()

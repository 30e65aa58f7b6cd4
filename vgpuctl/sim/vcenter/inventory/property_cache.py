"""Property values as XML, kept until their object changes: in a big inventory nothing else is quick enough."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.wire.serialiser import Xml

_MOST_CHARACTERS = 64 << 20
Key = tuple[str, Any]
"""A property's path, and the version of the API: an older client may be told less."""


class PropertyCache:
    def __init__(self) -> None:
        self._of: dict[str, dict[Key, Xml | None]] = {}
        self._characters = 0

    def of(self, moid: str) -> dict[Key, Xml | None]:
        """What is known of one object; read only."""
        return self._of.get(moid, {})

    def keep(self, moid: str, key: Key, xml: Xml | None) -> None:
        self._characters += len(xml or "")
        if self._characters > _MOST_CHARACTERS:
            self._of.clear()
            self._characters = len(xml or "")
        self._of.setdefault(moid, {})[key] = xml

    def forget(self, moid: str) -> None:
        for xml in self._of.pop(moid, {}).values():
            self._characters -= len(xml or "")

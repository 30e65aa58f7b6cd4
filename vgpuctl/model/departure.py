"""A host on its way from one shift to another: what going back restores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: A timetable and a host. Several timetables may share a host, each with its own workers.
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """How the host was when it was last whole. Only `to` changes until it is whole again, in whichever shift.

    `origin`: the shift that it was in, or "" if it was in none. `carried`: the vGPUs of each of the timetable's
    workers.
    """

    timetable: str
    host: str
    # Decision 0012: until the host is whole again, whichever shift is run, only `to` changes.
    origin: str
    to: str
    since: str = ""
    awake: tuple[str, ...] = ()
    carried: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.timetable, self.host

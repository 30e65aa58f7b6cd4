"""What became of one start of a shift on one host: arrived, tried and failed, or parked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a start on a host. The next start of the timetable begins a new one.

    `start`: when the shift was due. `arrived`: the whole host was in the shift once. `tries`: how often a switch to it
    has failed; `again`: when it may be tried again, whatever changes. `parked`: no further try before something in
    `failed_on` changes. `failed_on`: what the last try failed on, as it was then.
    """

    timetable: str
    host: str
    shift: str
    start: datetime
    arrived: bool = False
    tries: int = 0
    again: datetime | None = None
    parked: bool = False
    why: str = ""
    code: str = ""
    failed_on: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        return self.timetable, self.host

    def is_of(self, shift: str, start: datetime) -> bool:
        return (self.shift, self.start) == (shift, start)

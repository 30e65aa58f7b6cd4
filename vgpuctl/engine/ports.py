"""What the engine needs of the world; the edges provide it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vgpuctl.model.departure import Departure, Key
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import Entry, HostReport
from vgpuctl.model.notice import Notice
from vgpuctl.model.requests import Request

#: For how long in all an operation goes on although a server is not heard.
BLIND_S = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A server took the request. `task`: the vCenter task whose end will show the effect."""

    task: str | None = None


class Observer(Protocol):
    """Two streams, one picture."""

    def fleet(self) -> Fleet:
        """The picture as it is now."""

    def refresh(self) -> None:
        """Ask both servers once more: `fleet` is then newer than this call. PassingError if one does not answer."""

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call this (from any thread) after every change of the picture, until the function given back is called."""


class Sender(Protocol):
    """Carries one request to its server and returns when it was taken; raises VgpuctlError when it was not."""

    def send(self, request: Request) -> Answer: ...

    def announce(self, notices: Sequence[Notice]) -> None:
        """Tell pods' owners; it returns at once, and nothing stands on it."""


class Lease(Protocol):
    """The acting Lease: who holds it, and only he, writes."""

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        """Take it; a holder seen alive raises BusyError, one that shows no life is waited out."""

    def held(self) -> bool:
        """Is it certainly still ours, by the monotonic clock? If not, nothing is written until it is again."""

    def lost(self) -> bool:
        """Is it certainly another's?"""

    def release(self) -> None: ...


class Departures(Protocol):
    """Where it is recorded which hosts are on their way."""

    def read(self) -> Mapping[Key, Departure]: ...

    def write(self, changed: Mapping[Key, Departure | None]) -> None:
        """None takes one off."""


class Journal(Protocol):
    """Where people read afterwards what happened. Nothing stands on it: it may fail, it may be deleted."""

    def keep(self, entry: Entry) -> None:
        """Written some time soon; it returns at once."""

    def close(self, entry: Entry) -> str:
        """The last word, waited for a moment; "" or why nobody will read it."""


class Clock(Protocol):
    def monotonic(self) -> float: ...
    def utc(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The ports together, and for how long in all they may be blind (see BLIND_S)."""

    observer: Observer
    sender: Sender
    lease: Lease
    clock: Clock
    departures: Departures
    journal: Journal
    blind_s: float = BLIND_S


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    worker: str
    step: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`interrupted`: a person stopped it. `unheard`: it stopped because these could not be heard for too long."""

    wish: str
    hosts: tuple[HostReport, ...] = ()
    steps: tuple[StepReport, ...] = field(default=())
    seconds: float = 0.0
    interrupted: bool = False
    unheard: tuple[str, ...] = ()

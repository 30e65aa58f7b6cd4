"""What the engine needs of the world. The outer layers implement it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import Entry, HostReport
from vgpuctl.model.ledger import Changes, Ledger
from vgpuctl.model.notice import Notice
from vgpuctl.model.requests import Request

#: For how long in all an operation continues while a server is not heard.
#: Decision 0019: the sum counts, because a server that is away every other minute is no ground for a night.
BLIND_S = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A server took the request. `task`: the vCenter task whose end will show the effect."""

    task: str | None = None


class Observer(Protocol):
    """Joins the streams of both servers into one picture."""

    def fleet(self) -> Fleet:
        """Return the picture as it is now."""

    def refresh(self) -> None:
        """Ask both servers once more, so that `fleet` is newer than this call. PassingError if one does not answer."""

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` (from any thread) after every change of the picture, until the returned function is called."""


class Sender(Protocol):
    """Carries one request to its server. Returns when the server took it; raises VgpuctlError when it did not."""

    def send(self, request: Request) -> Answer: ...

    def check(self, requests: Iterable[Request]) -> None:
        """Raise VgpuctlError if our account lacks a right that these requests need."""

    def announce(self, notices: Sequence[Notice]) -> None:
        """Notify the pods' owners. It returns at once, and nothing depends on it."""


class Lease(Protocol):
    """The acting Lease: only the instance that holds it writes."""

    # Decision 0004: a holder is judged by whether it renews, on our monotonic clock. Clocks are never compared.
    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        """Take the Lease. A holder that gives way is asked to; another live holder raises BusyError.

        A holder without a sign of life is waited out.
        """

    def held(self) -> bool:
        """True if the Lease is certainly ours by the monotonic clock. While it is not, nothing is written."""

    def lost(self) -> bool:
        """True if the Lease is certainly another instance's."""

    def asked(self) -> str:
        """Return the command that asks us for the Lease, or "". It is answered by `release` at a safe point."""

    def release(self) -> None: ...


class LedgerStore(Protocol):
    """Where the ledger is kept."""

    def read(self) -> Ledger: ...

    # Decision 0012: one merge patch for all hosts, so the number of calls does not grow with them.
    def write(self, changed: Changes) -> None:
        """Write these entries; None removes one."""


class Journal(Protocol):
    """The record that people read afterwards. Nothing depends on it: it may fail, and it may be deleted."""

    def keep(self, entry: Entry) -> None:
        """Write the entry some time soon; this returns at once."""

    # Decision 0011: the last word waits three seconds at most. No decision reads the journal.
    def close(self, entry: Entry) -> str:
        """Write the entry for the last time, and wait a moment for that. Returns "", or why it cannot be read later."""


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
    ledger: LedgerStore
    journal: Journal
    blind_s: float = BLIND_S


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    worker: str
    step: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How a run ended.

    `interrupted`: a person stopped it. `unheard`: it stopped because these servers were silent too long.
    """

    wish: str
    hosts: tuple[HostReport, ...] = ()
    steps: tuple[StepReport, ...] = field(default=())
    seconds: float = 0.0
    interrupted: bool = False
    unheard: tuple[str, ...] = ()

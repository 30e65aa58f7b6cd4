"""All ports of the engine in one, for tests of what runs over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from vgpuctl.engine.ports import Answer, World
from vgpuctl.engine.runner import Progress, Runner
from vgpuctl.model.errors import UnreachableError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import Entry
from vgpuctl.model.ledger import Changes, Ledger
from vgpuctl.model.notice import Notice
from vgpuctl.model.requests import Request
from vgpuctl.reporting.waits import sentence


@dataclass
class Ports:
    """All ports in one; the Lease is held as the script says, look by look."""

    some: Fleet
    held_at: list[bool]
    is_lost: bool = False
    now_s: float = 0.0
    look_s: float = 0.0
    sent: list[Request] = field(default_factory=list)
    written: list[Changes] = field(default_factory=list)
    announced: list[Notice] = field(default_factory=list)
    checked: list[Request] = field(default_factory=list)
    forbidden: str = ""
    entries: list[Entry] = field(default_factory=list)
    refreshed: int = 0
    released: int = 0
    said: list[set[str]] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)

    def world(self) -> World:
        return World(observer=self, sender=self, lease=self, clock=self, ledger=self, journal=self)

    def fleet(self) -> Fleet:
        self.now_s += self.look_s
        return self.some

    def refresh(self) -> None:
        self.refreshed += 1

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def send(self, request: Request) -> Answer:
        self.sent.append(request)
        return Answer()

    def check(self, requests: Iterable[Request]) -> None:
        self.checked += requests
        if self.forbidden:
            raise UnreachableError(self.forbidden)

    def announce(self, notices: Sequence[Notice]) -> None:
        self.announced += notices

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None: ...

    def held(self) -> bool:
        return self.held_at.pop(0) if self.held_at else True

    def lost(self) -> bool:
        return self.is_lost

    def asked(self) -> str:
        return ""

    def release(self) -> None:
        self.released += 1

    def read(self) -> Ledger:
        return Ledger()

    def write(self, changed: Changes) -> None:
        self.written.append(changed)

    def monotonic(self) -> float:
        return self.now_s

    def utc(self) -> str:
        return "2026-11-18T20:00:00Z"

    def keep(self, entry: Entry) -> None:
        self.entries.append(entry)

    def close(self, entry: Entry) -> str:
        self.entries.append(entry)
        return ""

    def say(self, text: str) -> None: ...

    def progress(self, progress: Progress) -> None:
        """Ends the run after the third look."""
        self.said.append({sentence(wait) for wait in progress.decision.waits.values()})
        attempts = progress.decision.state.all_attempts()
        self.answered.append(sum(attempt.answered_s is not None for attempt in attempts))
        if len(self.said) >= 3:
            self.runner.interrupt()

    runner: Runner = field(init=False)

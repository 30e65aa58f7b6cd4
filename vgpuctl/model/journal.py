"""The journal: what each switch did and when, for people and for forecasts. Deleting it harms nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

DONE, WENT_BACK, FAILED, NOT_BEGUN, INTERRUPTED = "done", "went back", "failed", "not begun", "interrupted"
RUNNING, CUT_SHORT = "running", "cut short"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """How one host's part ended. `why` says what held it up, in words for people."""

    host: str
    end: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastStep:
    """One step as it went, in seconds since the beginning; `ended_s` is None where nobody saw its end.

    `given_up`: it ended because its host went back, or gave up.
    `after`: the name of the step that it waited for last. `held_by`: what kept it waiting longest, and for how long.
    """

    worker: str
    host: str
    kind: str
    what: str
    began_s: float
    ended_s: float | None = None
    given_up: bool = False
    after: str = ""
    held_by: str = ""
    held_s: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.worker}"

    @property
    def done(self) -> bool:
        return self.ended_s is not None and not self.given_up

    @property
    def took_s(self) -> float:
        return 0.0 if self.ended_s is None else self.ended_s - self.began_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One switch or provision. `began` is UTC; `left_out`: how many of its shortest steps found no room."""

    number: int = 0
    wish: str
    timetable: str = ""
    began: datetime
    seconds: float = 0.0
    by: str = ""
    outcome: str = RUNNING
    hosts: tuple[HostReport, ...] = ()
    steps: tuple[PastStep, ...] = ()
    left_out: int = 0

    @property
    def ended(self) -> datetime | None:
        return None if self.outcome == RUNNING else self.began + timedelta(seconds=self.seconds)

    def shortened(self, most: int) -> Entry:
        """With no more steps than that: the shortest go. Who came after one of them comes after the one before it."""
        longest = sorted(self.steps, key=lambda step: (step.ended_s is None, step.took_s), reverse=True)
        names = {step.name for step in longest[:most]}
        before = {step.name: step.after for step in self.steps if step.name not in names}

        def relinked(step: PastStep) -> PastStep:
            after = step.after
            while after in before:
                after = before[after]
            return replace(step, after=after)

        steps = tuple(relinked(step) for step in self.steps if step.name in names)
        return replace(self, steps=steps, left_out=self.left_out + len(before))


def document(entry: Entry) -> dict[str, Any]:
    """As it is kept, and as it is printed for programs. What is empty of a step is left out: there are many."""
    return {
        "apiVersion": "vgpuctl.io/v1",
        "kind": "History",
        "id": entry.number,
        "wish": entry.wish,
        "timetable": entry.timetable,
        "began": entry.began.isoformat(timespec="seconds"),
        "ended": entry.ended.isoformat(timespec="seconds") if entry.ended else None,
        "seconds": round(entry.seconds, 3),
        "by": entry.by,
        "outcome": entry.outcome,
        "hosts": [{"host": host.host, "end": host.end, "why": host.why} for host in entry.hosts],
        "steps": [_step(step) for step in entry.steps],
        "leftOut": entry.left_out,
    }


def _step(step: PastStep) -> dict[str, Any]:
    found: dict[str, Any] = {
        "worker": step.worker,
        "host": step.host,
        "step": step.kind,
        "what": step.what,
        "beganSeconds": round(step.began_s, 3),
        "endedSeconds": None if step.ended_s is None else round(step.ended_s, 3),
    }
    found |= {"givenUp": True} if step.given_up else {}
    found |= {"after": step.after} if step.after else {}
    return found | ({"heldBy": step.held_by, "heldSeconds": round(step.held_s, 3)} if step.held_by else {})


def from_document(found: Mapping[str, Any]) -> Entry:
    """KeyError, TypeError or ValueError where it is none of ours."""
    return Entry(
        number=int(found["id"]),
        wish=str(found["wish"]),
        timetable=str(found["timetable"]),
        began=datetime.fromisoformat(found["began"]),
        seconds=float(found["seconds"]),
        by=str(found["by"]),
        outcome=str(found["outcome"]),
        hosts=tuple(HostReport(host=str(h["host"]), end=str(h["end"]), why=str(h["why"])) for h in found["hosts"]),
        steps=tuple(_past_step(step) for step in found["steps"]),
        left_out=int(found["leftOut"]),
    )


def _past_step(found: Mapping[str, Any]) -> PastStep:
    ended = found["endedSeconds"]
    return PastStep(
        worker=str(found["worker"]),
        host=str(found["host"]),
        kind=str(found["step"]),
        what=str(found["what"]),
        began_s=float(found["beganSeconds"]),
        ended_s=None if ended is None else float(ended),
        given_up=bool(found.get("givenUp")),
        after=str(found.get("after", "")),
        held_by=str(found.get("heldBy", "")),
        held_s=float(found.get("heldSeconds", 0.0)),
    )

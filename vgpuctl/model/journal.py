"""The journal: what each switch did and when, for people and for forecasts. Deleting it harms nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.model.past_pods import PastPods, pods_document, read_pods
from vgpuctl.model.step_id import StepId

DONE, WENT_BACK, FAILED, NOT_BEGUN, INTERRUPTED = "done", "went back", "failed", "not begun", "interrupted"
RUNNING, CUT_SHORT = "running", "cut short"
#: Enough for one entry a minute for a thousand years.
MOST_NUMBER = 10**9 - 1
#: Reasons quote servers, whose messages may be long.
LONGEST_REASON = 4096
_STEP_TEXTS = ("worker", "host", "step", "what")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """How one host's part ended. `why` says what held it up, in words for people; `code` says it for programs.

    `failed_on`: the signs of what it failed on (`planning/signs.py`); the journal does not keep them.
    """

    host: str
    end: str
    why: str = ""
    code: str = ""
    failed_on: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastStep:
    """One step as it went, in seconds since the beginning; `ended_s` is None if its end was not seen.

    `given_up`: it ended because its host went back, or gave up.
    `after`: the step that it waited for last. `held_by`: what kept it waiting longest, and for how long. `held_reason`:
    the kind of that wait, or "" in entries of earlier releases.
    """

    id: StepId
    host: str
    what: str
    began_s: float
    ended_s: float | None = None
    given_up: bool = False
    after: StepId | None = None
    held_by: str = ""
    held_reason: str = ""
    held_s: float = 0.0

    @property
    def kind(self) -> str:
        return self.id.kind

    @property
    def subject(self) -> str:
        return self.id.subject

    @property
    def done(self) -> bool:
        return self.ended_s is not None and not self.given_up

    @property
    def took_s(self) -> float:
        return 0.0 if self.ended_s is None else self.ended_s - self.began_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One switch or provision. `began` is UTC. `left_out`: how many of its shortest steps found no room.

    `pods`: how the pods of each workload left.
    """

    number: int = 0
    wish: str
    timetable: str = ""
    began: datetime
    seconds: float = 0.0
    by: str = ""
    outcome: str = RUNNING
    hosts: tuple[HostReport, ...] = ()
    steps: tuple[PastStep, ...] = ()
    pods: tuple[PastPods, ...] = ()
    left_out: int = 0

    @property
    def ended(self) -> datetime | None:
        return None if self.outcome == RUNNING else self.began + timedelta(seconds=self.seconds)

    def shortened(self, most: int) -> Entry:
        """Return the entry with at most this many steps, without the shortest ones.

        A step that followed a step left out now follows the step before that one.
        """
        # Decision 0011: an entry has 512 KiB at most, and the shortest steps tell least.
        longest = sorted(self.steps, key=lambda step: (step.ended_s is None, step.took_s), reverse=True)
        ids = {step.id for step in longest[:most]}
        before = {step.id: step.after for step in self.steps if step.id not in ids}

        def relinked(step: PastStep) -> PastStep:
            after = step.after
            while after is not None and after in before:
                after = before[after]
            return replace(step, after=after)

        steps = tuple(relinked(step) for step in self.steps if step.id in ids)
        return replace(self, steps=steps, left_out=self.left_out + len(before))

    def readable(self) -> Entry:
        """Return the entry with reasons cut to the length that a reader accepts."""
        hosts = tuple(replace(host, why=bounded.cut(host.why, LONGEST_REASON)) for host in self.hosts)
        steps = tuple(replace(step, held_by=bounded.cut(step.held_by, LONGEST_REASON)) for step in self.steps)
        return replace(self, hosts=hosts, steps=steps)


def document(entry: Entry) -> dict[str, Any]:
    """Return the entry as it is stored, and printed for programs.

    A step's empty fields are left out: there are many steps.
    """
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
        "hosts": [host_document(host) for host in entry.hosts],
        "steps": [_step(step) for step in entry.steps],
        "pods": [pods_document(pods) for pods in entry.pods],
        "leftOut": entry.left_out,
    }


def host_document(host: HostReport) -> dict[str, Any]:
    code = {"code": host.code} if host.code else {}
    return {"host": host.host, "end": host.end, "why": host.why} | code


def _step(step: PastStep) -> dict[str, Any]:
    found: dict[str, Any] = {
        "worker": step.subject,
        "host": step.host,
        "step": step.kind,
        "what": step.what,
        "beganSeconds": round(step.began_s, 3),
        "endedSeconds": None if step.ended_s is None else round(step.ended_s, 3),
    }
    found |= {"givenUp": True} if step.given_up else {}
    found |= {"after": step.after} if step.after else {}
    return found | (_held(step) if step.held_by else {})


def _held(step: PastStep) -> dict[str, Any]:
    reason = {"heldReason": step.held_reason} if step.held_reason else {}
    return {"heldBy": step.held_by, **reason, "heldSeconds": round(step.held_s, 3)}


def from_document(found: Any) -> Entry:
    """Return the entry in a document. UnreadableError if it is none of ours, or if its picture could not be drawn."""
    found = bounded.fields(found, "the entry")
    return Entry(
        number=bounded.whole(found.get("id"), "id", most=MOST_NUMBER),
        wish=bounded.text(found.get("wish"), "wish"),
        timetable=bounded.text(found.get("timetable"), "timetable"),
        began=bounded.time(found.get("began"), "began"),
        seconds=bounded.seconds(found.get("seconds"), "seconds"),
        by=bounded.text(found.get("by"), "by"),
        outcome=bounded.text(found.get("outcome"), "outcome"),
        hosts=tuple(_host(host) for host in bounded.items(found.get("hosts"), "hosts")),
        steps=tuple(_past_step(step) for step in bounded.items(found.get("steps"), "steps")),
        # Entries of earlier releases have no pods.
        pods=tuple(read_pods(pods) for pods in bounded.items(found.get("pods", []), "pods")),
        left_out=bounded.whole(found.get("leftOut"), "leftOut"),
    )


def _host(found: Any) -> HostReport:
    found = bounded.fields(found, "hosts")
    host, end = (bounded.text(found.get(name), f"hosts.{name}") for name in ("host", "end"))
    why, code = bounded.text(found.get("why"), "hosts.why", LONGEST_REASON), found.get("code", "")
    return HostReport(host=host, end=end, why=why, code=bounded.text(code, "hosts.code"))


def _past_step(found: Any) -> PastStep:
    found = bounded.fields(found, "steps")
    worker, host, kind, what = (bounded.text(found.get(name), f"steps.{name}") for name in _STEP_TEXTS)
    after = bounded.text(found.get("after", ""), "steps.after")
    began_s = bounded.seconds(found.get("beganSeconds"), "steps.beganSeconds")
    ended = found.get("endedSeconds")
    ended_s = None if ended is None else bounded.seconds(ended, "steps.endedSeconds")
    if ended_s is not None and ended_s < began_s:
        raise UnreadableError("steps.endedSeconds is before steps.beganSeconds")
    return PastStep(
        id=StepId(kind, worker),
        host=host,
        what=what,
        began_s=began_s,
        ended_s=ended_s,
        given_up=found.get("givenUp") is True,
        after=StepId.read(after) if after else None,
        held_by=bounded.text(found.get("heldBy", ""), "steps.heldBy", LONGEST_REASON),
        held_reason=bounded.text(found.get("heldReason", ""), "steps.heldReason"),
        held_s=bounded.seconds(found.get("heldSeconds", 0.0), "steps.heldSeconds"),
    )

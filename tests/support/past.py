"""Entries of the journal, made for tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from vgpuctl.model.journal import DONE, Entry, HostReport, PastStep
from vgpuctl.model.step_id import StepId

BEGAN = datetime(2026, 11, 17, 20, 0, 3, tzinfo=UTC)
WHAT = {"Drain": "drain", "Suspend": "suspend", "PowerOn": "resume", "WaitBack": "ready", "Cordon": "cordon"}


def past_step(name: str, began_s: float, ended_s: float | None, after: str = "", **more: Any) -> PastStep:
    id = StepId.read(name)
    given: dict[str, Any] = {"host": "esx-1", "what": WHAT.get(id.kind, id.kind.lower()), **more}
    return PastStep(id=id, began_s=began_s, ended_s=ended_s, after=StepId.read(after) if after else None, **given)


def night(**more: Any) -> Entry:
    """A budget held worker-3, and so all the rest."""
    gateway = {"held_by": "budget gateway", "held_reason": "budget", "held_s": 24.0}
    steps = (
        past_step("Cordon/worker-1", 0.0, 0.1),
        past_step("Cordon/worker-3", 0.0, 0.1),
        past_step("Drain/worker-1", 0.1, 12.0, "Cordon/worker-3"),
        past_step("Drain/worker-3", 0.1, 36.0, "Cordon/worker-3", **gateway),
        past_step("Suspend/worker-1", 12.0, 53.0, "Drain/worker-1"),
        past_step("Suspend/worker-3", 36.0, 76.0, "Drain/worker-3"),
        past_step("PowerOn/worker-5", 76.0, 112.0, "Suspend/worker-3"),
        past_step("WaitBack/worker-5", 112.0, 127.5, "PowerOn/worker-5"),
    )
    given: dict[str, Any] = {"began": BEGAN, "seconds": 128.0, "steps": steps, "outcome": DONE, "number": 41}
    hosts = (HostReport(host="esx-1", end=DONE),)
    return Entry(**{"wish": "night", "timetable": "day-night", "by": "ann@laptop", "hosts": hosts, **given, **more})

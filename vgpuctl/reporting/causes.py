"""Why a host did not arrive where the wish wanted it: as parts, and as the sentence that people read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from vgpuctl.basics.names import fold
from vgpuctl.model.codes import WAY_BACK_FAILED, Coded
from vgpuctl.model.wait import Wait
from vgpuctl.reporting.waits import sentence


@dataclass(frozen=True)
class Cause(Coded, ABC):
    """A reason for an end. Each kind is a class; `str` makes the sentence."""

    @abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class StepRefused(Cause):
    """`step`: what was asked, as a plan says it."""

    code = "VG401"
    title = "vCenter or Kubernetes refused a step for good."
    way_out = "Mend what the server complains of, then run the same command again."

    subject: str
    step: str
    why: str

    def __str__(self) -> str:
        return f"{self.subject} could not {self.step}: {self.why}"


@dataclass(frozen=True)
class StepLate(Cause):
    """`waits`: what the step was waiting for. `to_blame`: the object whose change could help; "" if none is known."""

    code = "VG402"
    title = "A step took longer than it may."
    way_out = (
        "Remove what holds it up, or allow it more time (drain timeout in the timetable). Then run the same command "
        "again."
    )

    subject: str
    step: str
    limit_s: float
    waits: Wait
    to_blame: str = ""

    def __str__(self) -> str:
        why = "; ".join(filter(None, (sentence(self.waits), self.to_blame))) or "it took too long"
        return f"{self.subject} did not {self.step} within {self.limit_s:.0f} s: {why}"


@dataclass(frozen=True)
class OtherHost(Cause):
    """`first`: what happened on that other host."""

    code = "VG403"
    title = "Another host failed first, and this one may not go on alone."
    way_out = "Mend the other host's reason. With all_or_nothing or max_unavailable, hosts depend on each other."

    host: str
    first: Cause

    def __str__(self) -> str:
        return f"because of {self.host}: {self.first}"


@dataclass(frozen=True)
class WayBackFailed(Cause):
    """`first`: why the host went back at all."""

    code = WAY_BACK_FAILED
    title = "A host went back after a failure, and going back failed too."
    way_out = "Mend both reasons. Then choose a shift: running its command again takes the host there."

    first: Cause
    second: Cause

    def __str__(self) -> str:
        return f"{self.first} Going back failed too: {self.second}"


@dataclass(frozen=True)
class Stopped(Cause):
    """`before`: the next step, and the workers that stand before it."""

    code = "VG405"
    title = "The command was stopped before the host had arrived."
    way_out = "Run the same command to go on, or the command of another shift to go there."

    before: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        return ", ".join(f"{' '.join(fold(workers))} before {step}" for step, workers in self.before.items())

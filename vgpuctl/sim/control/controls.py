"""What running simulators can be told. Commands, tests and tools that have their folder all tell it here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vgpuctl.sim.remote import LEAP_WITHIN_S, ask

Document = dict[str, Any]


class Controls:
    """`folder`: where the simulators were started."""

    folder: Path

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def calls(self, *, reset: bool = True) -> dict[str, dict[str, int]]:
        """What the clients have called since the last reset of the count, by server and method."""
        return ask(self.folder, "DELETE" if reset else "GET", "calls")

    def clock(self) -> Document:
        """The simulated time, and if it stands still."""
        return ask(self.folder, "GET", "clock", within_s=LEAP_WITHIN_S)

    def advance(self, seconds: float) -> Document:
        """Let simulated time pass. Everything that falls due on the way happens, in order."""
        return self._clock(do="advance", seconds=seconds)

    def freeze(self) -> Document:
        """Let simulated time stand still, but for `advance`."""
        return self._clock(do="freeze")

    def run(self) -> Document:
        """Let simulated time follow real time again."""
        return self._clock(do="run")

    def fault(self, target: str, how: str, what: str = "", **rule: Any) -> Document:
        """Let calls go wrong, as `vgpuctl sim fault add TARGET --HOW WHAT` does. `rule`: on, nth, every, times …

        `fault("SuspendVM_Task", "task-fails", times=1)`, `fault("PATCH nodes", "fail", "429", times=1)`
        """
        return ask(self.folder, "POST", "faults", {"target": target, "how": how, "what": what, **rule})

    def faults(self) -> list[Document]:
        """The faults that stand, each with how often it was met."""
        found: list[Document] = ask(self.folder, "GET", "faults")["faults"]
        return found

    def met(self) -> list[int]:
        """How many calls each of the faults has met."""
        return [fault["met"] for fault in self.faults()]

    def clear_faults(self, *ids: str) -> list[str]:
        """Take these faults away, or all of them. Returns their numbers."""
        cleared: list[str] = ask(self.folder, "DELETE", "faults", {"ids": list(ids)})["cleared"]
        return cleared

    def person(self, act: str, in_s: float = 0.0) -> None:
        """Let a person do something, such as `cordon worker-1`, now or after a while."""
        ask(self.folder, "POST", "person", {"act": act, "in": in_s})

    def durations(self, **seconds: float | None) -> Document:
        """How long things take, with these changes from now on: `durations(suspend_s=30.0)`."""
        return ask(self.folder, "POST" if seconds else "GET", "durations", seconds or None)

    def vm(self, name: str, **changes: Any) -> Document:
        """Let a VM ask a `question`, get an `answer`, or lose its `tools`."""
        return ask(self.folder, "POST", "vm", {"name": name, **changes})

    def host(self, name: str, *, maintenance: bool) -> Document:
        return ask(self.folder, "POST", "host", {"name": name, "maintenance": maintenance})

    def reset(self) -> None:
        """Begin again: a new world like the first, at the same addresses, without faults."""
        ask(self.folder, "DELETE", "world")

    def _clock(self, **asked: Any) -> Document:
        """A world that has much to catch up on may take long."""
        return ask(self.folder, "POST", "clock", asked, LEAP_WITHIN_S)

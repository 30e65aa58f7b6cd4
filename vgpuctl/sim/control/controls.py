"""What running simulators can be told, for tests and tools that have their folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vgpuctl.sim.remote import LEAP_WITHIN_S, ask


class Controls:
    """`folder`: where the simulators were started."""

    folder: Path

    def calls(self, *, reset: bool = True) -> dict[str, dict[str, int]]:
        """What the clients have called since the last reset of the count, by server and method."""
        return ask(self.folder, "DELETE" if reset else "GET", "calls")

    def advance(self, seconds: float) -> None:
        """Let simulated time pass. Everything that falls due on the way happens, in order."""
        ask(self.folder, "POST", "clock", {"do": "advance", "seconds": seconds}, LEAP_WITHIN_S)

    def freeze(self) -> None:
        """Let simulated time stand still, but for `advance`."""
        ask(self.folder, "POST", "clock", {"do": "freeze"})

    def run(self) -> None:
        """Let simulated time follow real time again."""
        ask(self.folder, "POST", "clock", {"do": "run"})

    def fault(self, target: str, how: str, what: str = "", **rule: Any) -> None:
        """Let calls go wrong, as `vgpuctl sim fault add TARGET --HOW WHAT` does. `rule`: on, nth, every, times …

        `fault("SuspendVM_Task", "task-fails", times=1)`, `fault("PATCH nodes", "fail", "429", times=1)`
        """
        ask(self.folder, "POST", "faults", {"target": target, "how": how, "what": what, **rule})

    def faults(self) -> list[dict[str, Any]]:
        """The faults that stand, each with how often it was met."""
        found: list[dict[str, Any]] = ask(self.folder, "GET", "faults")["faults"]
        return found

    def met(self) -> list[int]:
        """How many calls each of the faults has met."""
        return [fault["met"] for fault in self.faults()]

    def clear_faults(self) -> None:
        ask(self.folder, "DELETE", "faults", {})

    def person(self, act: str, in_s: float = 0.0) -> None:
        """Let a person do something, such as `cordon worker-1`, now or after a while."""
        ask(self.folder, "POST", "person", {"act": act, "in": in_s})

    def durations(self, **seconds: float) -> None:
        """Change how long things take from now on: `durations(suspend_s=30.0)`."""
        ask(self.folder, "POST", "durations", seconds)

    def vm(self, name: str, **changes: Any) -> None:
        """Let a VM ask a `question`, get an `answer`, or lose its `tools`."""
        ask(self.folder, "POST", "vm", {"name": name, **changes})

    def host(self, name: str, *, maintenance: bool) -> None:
        ask(self.folder, "POST", "host", {"name": name, "maintenance": maintenance})

    def reset(self) -> None:
        """Begin again: a new world like the first, at the same addresses, without faults."""
        ask(self.folder, "DELETE", "world")

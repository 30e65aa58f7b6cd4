"""The client for the control of running simulators, used by commands, tests and tools that have the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vgpuctl.sim.control.client import ADVANCE_WITHIN_S, call_control

Document = dict[str, Any]


class Controls:
    """Controls the simulators that were started in `folder`."""

    folder: Path

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def calls(self, *, reset: bool = True) -> dict[str, dict[str, int]]:
        """Return how often each method was called since the last reset of the count, by server."""
        return call_control(self.folder, "DELETE" if reset else "GET", "calls")

    def clock(self) -> Document:
        """Return the simulated time, and whether it stands still."""
        return call_control(self.folder, "GET", "clock", within_s=ADVANCE_WITHIN_S)

    def advance(self, seconds: float) -> Document:
        """Let simulated time pass. Everything due on the way happens, in order."""
        return self._set_clock(do="advance", seconds=seconds)

    def freeze(self) -> Document:
        """Stop simulated time. Only `advance` still moves it."""
        return self._set_clock(do="freeze")

    def run(self) -> Document:
        """Let simulated time follow real time again."""
        return self._set_clock(do="run")

    def fault(self, target: str, how: str, what: str = "", **rule: Any) -> Document:
        """Let calls go wrong, as `vgpuctl sim fault add TARGET --HOW WHAT` does. `rule`: on, nth, every, times …

        `fault("SuspendVM_Task", "task-fails", times=1)`, `fault("PATCH nodes", "fail", "429", times=1)`
        """
        return call_control(self.folder, "POST", "faults", {"target": target, "how": how, "what": what, **rule})

    def faults(self) -> list[Document]:
        """Return the active faults, each with the number of calls that it met."""
        found: list[Document] = call_control(self.folder, "GET", "faults")["faults"]
        return found

    def met(self) -> list[int]:
        """Return how many calls each fault has met."""
        return [fault["met"] for fault in self.faults()]

    def clear_faults(self, *ids: str) -> list[str]:
        """Clear these faults, or all of them. Returns their ids."""
        cleared: list[str] = call_control(self.folder, "DELETE", "faults", {"ids": list(ids)})["cleared"]
        return cleared

    def person(self, act: str, in_s: float = 0.0) -> None:
        """Let a person do something, such as `cordon worker-1`, now or after a while."""
        call_control(self.folder, "POST", "person", {"act": act, "in": in_s})

    def durations(self, **seconds: float | None) -> Document:
        """Return how long things take, after changing them as given: `durations(suspend_s=30.0)`."""
        return call_control(self.folder, "POST" if seconds else "GET", "durations", seconds or None)

    def vm(self, name: str, **changes: Any) -> Document:
        """Let a VM ask a `question`, get an `answer`, lose its `tools`, or have its `clock` set by another program."""
        return call_control(self.folder, "POST", "vm", {"name": name, **changes})

    def host(self, name: str, **changes: Any) -> Document:
        """Set a host's `maintenance`, or let it do an `act`: crash, disconnect, not-responding or connect.

        `build` and `vgpu_manager` install another version of ESXi and of NVIDIA's vGPU Manager.
        """
        return call_control(self.folder, "POST", "host", {"name": name, **changes})

    def reset(self) -> None:
        """Begin again: a new world like the first, at the same addresses, without faults."""
        call_control(self.folder, "DELETE", "world")

    def _set_clock(self, **request: Any) -> Document:
        """A long advance may take minutes, hence the longer timeout."""
        return call_control(self.folder, "POST", "clock", request, ADVANCE_WITHIN_S)

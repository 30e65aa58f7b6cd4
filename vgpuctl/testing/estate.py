"""A simulated estate as an object: real servers on loopback, in a thread, over one world with the physics of cards."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vgpuctl.sim.folder import made
from vgpuctl.sim.inventory import Durations, Inventory, story
from vgpuctl.sim.remote import LEAP_WITHIN_S, ask
from vgpuctl.sim.scenarios import found
from vgpuctl.sim.scenarios.scenario import read_scenario
from vgpuctl.sim.server import Simulation
from vgpuctl.sim.surroundings import ELSEWHERE, exported

READY_WITHIN_S = 30.0


class Estate:
    """One vCenter and one Kubernetes, until `close`, or the end of a `with`.

    `scenario`: a file, or the name of one that comes with vgpuctl. `instant`: suspending, starting and booting take no
    time; else they take seconds, as `advance` lets pass.
    """

    def __init__(self, folder: Path, scenario: str | None = None, *, instant: bool = True) -> None:
        self.folder = made(folder)
        durations = Durations.instant() if instant else Durations()
        inventory = read_scenario(found(scenario), durations) if scenario else story(1, 1)
        self._failure: BaseException | None = None
        self._end: Callable[[], None] = _nothing
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(inventory, durations), name="estate", daemon=True)
        self._thread.start()
        if not self._ready.wait(READY_WITHIN_S) or self._failure is not None:
            self.close()
            raise RuntimeError("The simulated servers did not start.") from self._failure

    @property
    def env(self) -> Mapping[str, str]:
        """What leads there: GOVC_*, KUBECONFIG, VGPUCTL_*."""
        return exported((self.folder / "env").read_text())

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def environment(self) -> dict[str, str]:
        """This process's environment, led there: without any variable that could lead elsewhere."""
        others = {name for line in ELSEWHERE for name in line.split()}
        return {name: value for name, value in os.environ.items() if name not in others} | dict(self.env)

    def calls(self) -> dict[str, dict[str, int]]:
        """What the clients have called since this was asked last, by server and method."""
        return ask(self.folder, "DELETE", "calls")

    def advance(self, seconds: float) -> None:
        """Let simulated time pass. Everything that falls due on the way happens, in order."""
        ask(self.folder, "POST", "clock", {"do": "advance", "seconds": seconds}, LEAP_WITHIN_S)

    def fault(self, target: str, how: str, what: str = "", **rule: Any) -> None:
        """Let calls go wrong, as `vgpuctl sim fault add TARGET --HOW WHAT` does. `rule`: on, nth, every, times …

        `estate.fault("SuspendVM_Task", "task-fails", times=1)`, `estate.fault("PATCH nodes", "fail", "429", times=1)`
        """
        ask(self.folder, "POST", "faults", {"target": target, "how": how, "what": what, **rule})

    def close(self) -> None:
        self._end()
        self._thread.join(READY_WITHIN_S)

    def __enter__(self) -> Estate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, inventory: Inventory, durations: Durations) -> None:
        try:
            asyncio.run(self._until_closed(Simulation(self.folder, inventory, durations)))
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _until_closed(self, simulation: Simulation) -> None:
        loop = asyncio.get_running_loop()

        def closed(end: Callable[[], None]) -> None:
            self._end = lambda: _call_soon(loop, end)

        await simulation.serve(closed, ready=self._ready.set)


def _nothing() -> None:
    """Before the servers run."""


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)

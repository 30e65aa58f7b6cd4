"""A simulated vCenter and Kubernetes as one object: real servers on loopback, in a thread, over one world."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from vgpuctl.sim.clock import do_nothing
from vgpuctl.sim.control.controls import Controls
from vgpuctl.sim.environment import FOREIGN_VARIABLES, parse_exports
from vgpuctl.sim.folder import create_folder
from vgpuctl.sim.inventory import Durations, Inventory, default_inventory
from vgpuctl.sim.logins import Logins
from vgpuctl.sim.scenarios import find_scenario
from vgpuctl.sim.scenarios.scenario import read_scenario
from vgpuctl.sim.server import Simulation
from vgpuctl.sim.world import World

READY_WITHIN_S = 30.0
Done = TypeVar("Done")


class Estate(Controls):
    """One simulated vCenter and one Kubernetes, until `close` or the end of a `with`.

    `scenario`: a file, the name of a scenario that comes with vgpuctl, or an inventory. `instant`: suspending, starting
    and booting take no time. Otherwise they take `durations`, or the seconds that `advance` lets pass. `frozen`: time
    stands still until `run`.
    """

    def __init__(
        self,
        folder: Path,
        scenario: str | Inventory | None = None,
        *,
        instant: bool = True,
        durations: Durations | None = None,
        frozen: bool = False,
        logins: Logins | None = None,
    ) -> None:
        super().__init__(create_folder(folder))
        paces = durations or (Durations.instant() if instant else Durations())
        self.logins = logins or Logins()
        self._simulation = Simulation(self.folder, _inventory(scenario, paces), paces, self.logins, frozen)
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: Callable[[], None] = do_nothing
        self._ready = threading.Event()
        # Decision 0020: one of three ways to run a world, for clients and for others' tests.
        self._thread = threading.Thread(target=self._serve, name="estate", daemon=True)
        self._thread.start()
        if not self._ready.wait(READY_WITHIN_S) or self._failure is not None:
            self.close()
            raise RuntimeError("The simulated servers did not start.") from self._failure

    @property
    def env(self) -> Mapping[str, str]:
        """The variables that lead to the estate: GOVC_*, KUBECONFIG, VGPUCTL_*."""
        return parse_exports((self.folder / "env").read_text())

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def ca(self) -> Path:
        """The certificate of the authority that signed both servers' certificates."""
        return self.folder / "ca.pem"

    @property
    def vcenter_port(self) -> int:
        return self._simulation.ports["vcenter"]

    @property
    def kubernetes_port(self) -> int:
        return self._simulation.ports["kubernetes"]

    @property
    def world(self) -> World:
        """The world behind the servers. It belongs to their thread, so only `within` may touch it."""
        return self._simulation.served_world.world

    def environment(self) -> dict[str, str]:
        """Return this process's environment, changed so that it leads to the estate and nowhere else."""
        # Decision 0016: a test must not reach the servers that the shell names.
        others = {name for line in FOREIGN_VARIABLES for name in line.split()}
        return {name: value for name, value in os.environ.items() if name not in others} | dict(self.env)

    def within(self, action: Callable[[World], Done]) -> Done:
        """Run an action on the world, in the thread of its servers."""

        async def act() -> Done:
            return action(self.world)

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(act(), self._loop).result(READY_WITHIN_S)

    def close(self) -> None:
        self._end()
        self._thread.join(READY_WITHIN_S)

    def __enter__(self) -> Estate:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        try:
            asyncio.run(self._until_closed())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _until_closed(self) -> None:
        loop = self._loop = asyncio.get_running_loop()

        def closed(end: Callable[[], None]) -> None:
            self._end = lambda: _call_soon(loop, end)

        await self._simulation.serve(closed, ready=self._ready.set)


def _inventory(scenario: str | Inventory | None, durations: Durations) -> Inventory:
    if isinstance(scenario, Inventory):
        return scenario
    return read_scenario(find_scenario(scenario), durations) if scenario else default_inventory(1, 1)


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[..., Any]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)

"""Both servers and their control in one process and one event loop, over one world that follows real time."""

from __future__ import annotations

import asyncio
import copy
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import trustme

from vgpuctl.sim.door import Door
from vgpuctl.sim.faults import KUBERNETES, VCENTER
from vgpuctl.sim.files import Access, write_all, write_pid
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.logins import Logins
from vgpuctl.sim.stage import CONTROL, Stage, on
from vgpuctl.sim.world import World

#: Is given, in the running loop, what ends the servers.
Until = Callable[[Callable[[], None]], None]


def a_signal(end: Callable[[], None]) -> None:
    """Ctrl-C, or `sim down`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)


@dataclass(slots=True)
class Simulation:
    """The two servers over one world, and a third that controls it. `frozen`: its time stands still at first."""

    folder: Path
    inventory: Inventory
    durations: Durations
    logins: Logins = field(default_factory=Logins)
    frozen: bool = False
    control_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    stage: Stage = field(init=False)
    _doors: dict[str, Door] = field(init=False)
    _opening: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, until: Until, ready: Callable[[], None] = lambda: None) -> None:
        """`until` is given what ends it; `ready` is called once all servers answer. The pid is written then, and taken
        away at the end."""
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1", "localhost")
        self.stage = self._new_stage()
        self._doors = {name: Door(on(lambda: self.stage, name), certificate) for name in self.stage.apps}
        until(self._end)
        serving = [asyncio.create_task(door.run()) for door in self._doors.values()]
        self.stage.driver.drive()
        await _until_started([*self._doors.values()], serving)
        self._write(authority)
        write_pid(self.folder)
        ready()
        try:
            await asyncio.gather(*serving)
        finally:
            (self.folder / "pid").unlink(missing_ok=True)

    @property
    def ports(self) -> dict[str, int]:
        """By server. They stay the same for as long as it serves."""
        return {name: door.port for name, door in self._doors.items()}

    def reset(self) -> None:
        """Begin again: a new world like the first, at the same addresses. Clients find their connections cut."""
        self.stage.end()
        for name in (VCENTER, KUBERNETES):
            self._doors[name].hang_up()
        self.stage = self._new_stage()
        self.stage.driver.drive()
        self.look_at_doors()

    def look_at_doors(self) -> None:
        """Shut the door of a server that is to be down, and open it again when it is to be up."""
        for name in (VCENTER, KUBERNETES):
            if self.stage.world.calls.faults.down(name):
                self._doors[name].shut()
            else:
                opening = asyncio.get_running_loop().create_task(self._doors[name].open())
                self._opening.add(opening)
                opening.add_done_callback(self._opening.discard)

    def _new_stage(self) -> Stage:
        """Durations that were set while it ran are not those of the beginning."""
        world = World(self.inventory, copy.copy(self.durations), logins=self.logins)
        return Stage(world, self, self.control_token, frozen=self.frozen)

    def _end(self) -> None:
        self.stage.end()
        for door in self._doors.values():
            door.end()

    def _write(self, authority: trustme.CA) -> None:
        access = Access(
            vcenter_port=self.ports[VCENTER],
            kubernetes_port=self.ports[KUBERNETES],
            control_port=self.ports[CONTROL],
            logins=self.logins,
            control_token=self.control_token,
            ca_pem=authority.cert_pem.bytes(),
        )
        write_all(self.folder, self.inventory, access)


async def _until_started(doors: list[Door], serving: list[asyncio.Task[None]]) -> None:
    while not all(door.started for door in doors):
        for task in serving:
            if task.done():
                task.result()
                raise RuntimeError("a server ended before it began")
        await asyncio.sleep(0.01)

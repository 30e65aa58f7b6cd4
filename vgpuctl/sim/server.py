"""Both servers and their control in one process and one event loop, over one world that follows real time."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import trustme
from starlette.applications import Starlette

from vgpuctl.sim.control.app import control_app
from vgpuctl.sim.control.desk import Desk
from vgpuctl.sim.disturbance import able_to_hang_up
from vgpuctl.sim.door import Door
from vgpuctl.sim.driver import Driver
from vgpuctl.sim.faults import KUBERNETES, VCENTER
from vgpuctl.sim.files import Access, write_all, write_pid
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.kube.app import kubernetes_app
from vgpuctl.sim.vcenter.app import vcenter_app
from vgpuctl.sim.world import World

#: Is given, in the running loop, what ends the servers.
Until = Callable[[Callable[[], None]], None]

READER = "readonly@vsphere.local"
USER = "administrator@vsphere.local"


def a_signal(end: Callable[[], None]) -> None:
    """Ctrl-C, or `sim down`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)


@dataclass(slots=True)
class Simulation:
    """One world, the two servers over it, and a third for whoever controls them."""

    folder: Path
    inventory: Inventory
    durations: Durations
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    reader_password: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    control_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    async def serve(self, until: Until, ready: Callable[[], None] = lambda: None) -> None:
        """`until` is given what ends it; `ready` is called once all servers answer. The pid is written then, and taken
        away at the end."""
        world = World(self.inventory, self.durations)
        driver = Driver(world.clock)
        center = vcenter_app(world.estate, world.calls, USER, self.password, reader=(READER, self.reader_password))
        cluster = kubernetes_app(world.kubernetes, world.calls, self.token)
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1", "localhost")
        doors = {
            VCENTER: Door(able_to_hang_up(driver.before(center)), certificate),
            KUBERNETES: Door(able_to_hang_up(driver.before(cluster)), certificate),
        }
        attendant = Attendant(world, doors)
        desk = Desk(world, driver, attendant.look)
        control = Door(driver.before(control_app(desk, self.control_token)), certificate)
        servers = [*doors.values(), control]
        until(lambda: _end(servers, center))
        serving = [asyncio.create_task(server.run()) for server in servers]
        driver.drive()
        await _until_started(servers, serving)
        self._write(doors, control, authority)
        write_pid(self.folder)
        ready()
        try:
            await asyncio.gather(*serving)
        finally:
            (self.folder / "pid").unlink(missing_ok=True)

    def _write(self, doors: dict[str, Door], control: Door, authority: trustme.CA) -> None:
        access = Access(
            vcenter_port=doors[VCENTER].port,
            kubernetes_port=doors[KUBERNETES].port,
            control_port=control.port,
            user=USER,
            password=self.password,
            reader=(READER, self.reader_password),
            token=self.token,
            control_token=self.control_token,
            ca_pem=authority.cert_pem.bytes(),
        )
        write_all(self.folder, self.inventory, access)


class Attendant:
    """Shuts the door of a server that is to be down, and opens it again."""

    def __init__(self, world: World, doors: dict[str, Door]) -> None:
        self._world = world
        self._doors = doors
        self._opening: set[asyncio.Task[None]] = set()

    def look(self) -> None:
        for name, door in self._doors.items():
            if self._world.calls.faults.down(name):
                door.shut()
            else:
                opening = asyncio.get_running_loop().create_task(door.open())
                self._opening.add(opening)
                opening.add_done_callback(self._opening.discard)


def _end(servers: list[Door], center: Starlette) -> None:
    """Open waits are ended first: a server does not end before its answers have."""
    center.state.center.sessions.end_all()
    for server in servers:
        server.should_exit = True
        server.force_exit = True


async def _until_started(servers: list[Door], serving: list[asyncio.Task[None]]) -> None:
    while not all(server.started for server in servers):
        for task in serving:
            if task.done():
                task.result()
                raise RuntimeError("a server ended before it began")
        await asyncio.sleep(0.01)

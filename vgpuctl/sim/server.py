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

from vgpuctl.sim.faults import KUBERNETES, VCENTER
from vgpuctl.sim.files import Access, write_all, write_pid
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.logins import Logins
from vgpuctl.sim.served_world import CONTROL, ServedWorld, current_app
from vgpuctl.sim.tls_server import TlsServer
from vgpuctl.sim.world import World

#: Receives, in the running loop, the function that ends the servers.
Until = Callable[[Callable[[], None]], None]


def until_signal(end: Callable[[], None]) -> None:
    """End the servers on Ctrl-C or `sim down`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)


@dataclass(slots=True)
class Simulation:
    """The two servers over one world, and a third that controls it. `frozen`: time stands still at first."""

    folder: Path
    inventory: Inventory
    durations: Durations
    logins: Logins = field(default_factory=Logins)
    frozen: bool = False
    control_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    served_world: ServedWorld = field(init=False)
    _tls_servers: dict[str, TlsServer] = field(init=False)
    _starting: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, until: Until, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until `until` calls the function that it is given. `ready` is called once all servers answer.

        The pid is written then, and removed at the end.
        """
        # A CA of this process alone: it vouches for nothing else, and ends with it.
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1", "localhost")
        self.served_world = self._new_served_world()
        self._tls_servers = {
            name: TlsServer(current_app(lambda: self.served_world, name), certificate)
            for name in self.served_world.apps
        }
        until(self._end)
        serving = [asyncio.create_task(tls_server.run()) for tls_server in self._tls_servers.values()]
        self.served_world.driver.start()
        await _wait_until_started([*self._tls_servers.values()], serving)
        self._write(authority)
        write_pid(self.folder)
        ready()
        try:
            await asyncio.gather(*serving)
        finally:
            (self.folder / "pid").unlink(missing_ok=True)

    @property
    def ports(self) -> dict[str, int]:
        """The port of each server. They do not change while it serves."""
        return {name: tls_server.port for name, tls_server in self._tls_servers.items()}

    def reset(self) -> None:
        """Begin again: a new world like the first, at the same addresses. Clients lose their connections."""
        self.served_world.stop()
        for name in (VCENTER, KUBERNETES):
            self._tls_servers[name].abort_connections()
        self.served_world = self._new_served_world()
        self.served_world.driver.start()
        self.apply_down_faults()

    def apply_down_faults(self) -> None:
        """Stop listening on the servers that a fault takes down; listen again on the others."""
        for name in (VCENTER, KUBERNETES):
            if self.served_world.world.calls.faults.down(name):
                self._tls_servers[name].stop_listening()
            else:
                starting = asyncio.get_running_loop().create_task(self._tls_servers[name].start_listening())
                self._starting.add(starting)
                starting.add_done_callback(self._starting.discard)

    def _new_served_world(self) -> ServedWorld:
        """Return a new world with the original durations: changes made while it ran do not survive a reset."""
        world = World(self.inventory, copy.copy(self.durations), logins=self.logins)
        return ServedWorld(world, self, self.control_token, frozen=self.frozen)

    def _end(self) -> None:
        self.served_world.stop()
        for tls_server in self._tls_servers.values():
            tls_server.stop()

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


async def _wait_until_started(tls_servers: list[TlsServer], serving: list[asyncio.Task[None]]) -> None:
    while not all(tls_server.started for tls_server in tls_servers):
        for task in serving:
            if task.done():
                task.result()
                raise RuntimeError("a server ended before it began")
        await asyncio.sleep(0.01)

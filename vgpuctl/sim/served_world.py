"""One world, the driver of its time, and the applications that serve it. A reset replaces all three at once."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from vgpuctl.sim.control.app import control_app
from vgpuctl.sim.control.control_api import ControlApi, Servers
from vgpuctl.sim.driver import Driver
from vgpuctl.sim.fault_effects import with_abort
from vgpuctl.sim.faults import KUBERNETES, VCENTER
from vgpuctl.sim.kube.api.app import KubernetesApp
from vgpuctl.sim.vcenter.wire.app import vcenter_app
from vgpuctl.sim.world import World

CONTROL = "control"


class ServedWorld:
    """Created in the event loop in which the servers run. `servers`: what the control changes about the servers
    themselves.
    """

    def __init__(self, world: World, servers: Servers, control_token: str, *, frozen: bool = False) -> None:
        self.world = world
        self.driver = Driver(world.clock, frozen=frozen)
        control_api = ControlApi(world, self.driver, servers)
        self.apps: dict[str, ASGIApp] = {
            # Decision 0006: the control has a token and a port of its own, and answers while the others are away.
            VCENTER: with_abort(self.driver.with_current_time(vcenter_app(world.center, world.calls))),
            KUBERNETES: with_abort(
                self.driver.with_current_time(KubernetesApp(world.api, world.calls, world.logins.token))
            ),
            CONTROL: self.driver.with_current_time(control_app(control_api, control_token)),
        }

    def stop(self) -> None:
        """End the sessions and their pending waits: a server stops only after its last answer."""
        self.driver.stop()
        self.world.center.sessions.end_all()


def current_app(served_world: Callable[[], ServedWorld], name: str) -> ASGIApp:
    """Return an application that passes each request to the application of that name of the current world."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await served_world().apps[name](scope, receive, send)

    return app

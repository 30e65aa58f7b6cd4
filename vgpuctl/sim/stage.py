"""One world, what drives its time, and the apps that stand before it. A reset exchanges all of it at once."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from vgpuctl.sim.control.app import control_app
from vgpuctl.sim.control.control_api import ControlApi, Outside
from vgpuctl.sim.disturbance import able_to_hang_up
from vgpuctl.sim.driver import Driver
from vgpuctl.sim.faults import KUBERNETES, VCENTER
from vgpuctl.sim.kube.api.app import KubernetesApp
from vgpuctl.sim.vcenter.wire.app import vcenter_app
from vgpuctl.sim.world import World

CONTROL = "control"


class Stage:
    """Made in the loop in which the servers run. `outside`: what the control does to the servers themselves."""

    def __init__(self, world: World, outside: Outside, control_token: str, *, frozen: bool = False) -> None:
        self.world = world
        self.driver = Driver(world.clock, frozen=frozen)
        control_api = ControlApi(world, self.driver, outside)
        self.apps: dict[str, ASGIApp] = {
            VCENTER: able_to_hang_up(self.driver.before(vcenter_app(world.center, world.calls))),
            KUBERNETES: able_to_hang_up(self.driver.before(KubernetesApp(world.api, world.calls, world.logins.token))),
            CONTROL: self.driver.before(control_app(control_api, control_token)),
        }

    def end(self) -> None:
        """Open waits are ended: a server does not end before its answers have."""
        self.driver.end()
        self.world.center.sessions.end_all()


def on(stage: Callable[[], Stage], name: str) -> ASGIApp:
    """The app of that name on the stage that stands now."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await stage().apps[name](scope, receive, send)

    return app

"""Everything behind the two servers: one process, one clock, virtual time. HTTP is only one way to reach it."""

from __future__ import annotations

from datetime import UTC, datetime

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.kube.api import Api
from vgpuctl.sim.kube.world import KubernetesWorld
from vgpuctl.sim.people import People
from vgpuctl.sim.vcenter.estate import Estate


class World:
    def __init__(self, inventory: Inventory, durations: Durations, *, began: datetime | None = None) -> None:
        self.clock = Clock(began or datetime.now(UTC))
        self.inventory = inventory
        self.durations = durations
        self.calls = Calls()
        self.kubernetes = KubernetesWorld(self.clock, inventory, durations)
        self.estate = Estate(self.clock, inventory, durations, self.kubernetes)
        self.people = People(self.estate, Api(self.kubernetes))
        self.calls.person = self.people.act

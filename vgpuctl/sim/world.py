"""The simulated pair: vCenter and Kubernetes over one clock, in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, Inventory, default_inventory
from vgpuctl.sim.kube.api.api import Api
from vgpuctl.sim.kube.world import KubernetesWorld
from vgpuctl.sim.logins import Logins
from vgpuctl.sim.people import People
from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.inventory.permissions import ADMIN, READ_ONLY
from vgpuctl.sim.vcenter.physics.estate import Estate
from vgpuctl.sim.vcenter.physics.records import Task
from vgpuctl.sim.vcenter.wire.sessions import Account, Sessions

LONGEST_TASK_S = 3600.0


class World:
    """The world without threads, sockets or real time.

    `estate` is vCenter's physics, `center` its objects as clients read them. `kubernetes` is the cluster, `api` its
    API. `seed` determines the names of its pods. `server.Simulation` serves a world over TLS.
    """

    def __init__(
        self,
        inventory: Inventory | None = None,
        durations: Durations | None = None,
        *,
        began: datetime | None = None,
        logins: Logins | None = None,
        seed: int = 1,
    ) -> None:
        # Decision 0005: both halves share one clock, and are connected only by `Guests`.
        self.clock = Clock(began or datetime.now(UTC))
        self.inventory = inventory or default_inventory()
        self.durations = durations or Durations()
        self.logins = logins or Logins()
        self.calls = Calls()
        self.kubernetes = KubernetesWorld(self.clock, self.inventory, self.durations, seed=seed)
        self.api = Api(self.kubernetes)
        self.estate = Estate(self.clock, self.inventory, self.durations, self.kubernetes)
        self.center = Center(self.estate, Sessions(_accounts(self.logins), self.clock))
        self.people = People(self.estate, self.api)
        self.calls.act_as_person = self.people.act_or_log

    def wait(self, seconds: float) -> None:
        """Let time pass. Everything due on the way happens, in order."""
        self.clock.advance_to(self.clock.now_s + seconds)

    def wait_for(self, task: Task) -> Task:
        """Let time pass until vCenter's task has ended, for an hour at most."""
        ends_s = self.clock.now_s + LONGEST_TASK_S
        while not task.done:
            due_s = self.clock.next_due_s()
            if due_s is None or due_s > ends_s:
                raise TimeoutError(f"The task {task.operation.value.method} of {task.entity_name} does not end.")
            self.clock.advance_to(due_s)
        return task


def _accounts(logins: Logins) -> list[Account]:
    return [
        Account(logins.user, logins.password, ADMIN),
        Account(logins.reader, logins.readers_password, READ_ONLY),
        Account(logins.operator, logins.operators_password),
    ]

"""Before a plan begins, vCenter is asked whether our user may do what the plan needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pyVmomi import vim

from tests.support.clients import SERVER, vcenter_as
from tests.support.operator import ROLE, carry_out, printed, role_named
from vgpuctl.model.errors import ExitCode, PassingError, UnreachableError
from vgpuctl.model.requests import AttachVgpus, PatchNode, PowerOffVm, PowerOnVm, Request, ShutDownGuest, SuspendVm
from vgpuctl.sim.faults import VCENTER, Effect, How, Rule
from vgpuctl.sim.inventory import default_inventory
from vgpuctl.sim.world import World
from vgpuctl.vsphere.actions import VmRequest
from vgpuctl.vsphere.permissions import check, needed
from vgpuctl.vsphere.rights import PRIVILEGES
from vgpuctl.vsphere.session import VcenterSettings

NODE = PatchNode(node="worker-1")


@dataclass
class Asking:
    """A session of vgpuctl's own user, in virtual time."""

    world: World

    def __post_init__(self) -> None:
        logins = self.world.logins
        self.settings = VcenterSettings(host=SERVER, user=logins.operator, password=logins.operators_password)
        self.content = vcenter_as(self.world, logins.operator, logins.operators_password)
        self.key = self.content.sessionManager.currentSession.key

    def object(self, kind: str, moid: str) -> Any:
        return getattr(vim, kind)(moid, self.content.rootFolder._stub)


@pytest.fixture
def world() -> World:
    world = World(default_inventory(1, 1))
    carry_out(admin(world), printed())
    return world


def admin(world: World) -> Any:
    return vcenter_as(world, world.logins.user, world.logins.password)


def narrow(world: World, *privileges: str) -> None:
    """Leave only these to the role."""
    content = admin(world)
    content.authorizationManager.UpdateAuthorizationRole(role_named(content, ROLE).roleId, ROLE, list(privileges))


def power_on(world: World, *names: str) -> list[Request]:
    return [PowerOnVm(worker=name, vm=world.estate.vms[name].moid) for name in names]


def checked(world: World, *requests: Request) -> None:
    check(Asking(world), requests)  # type: ignore[arg-type]


def calls(world: World) -> int:
    return int(world.calls.as_dict()[VCENTER].get("HasPrivilegeOnEntities", 0))


def test_each_request_needs_what_the_table_has() -> None:
    requests: list[VmRequest] = [
        PowerOnVm(worker="worker-1", vm="vm-1"),
        SuspendVm(worker="worker-1", vm="vm-1"),
        PowerOffVm(worker="worker-1", vm="vm-1"),
        ShutDownGuest(worker="worker-1", vm="vm-1"),
        AttachVgpus(worker="worker-1", vm="vm-1", vgpus=("grid_v100-4q",), mmio_gib=64),
    ]
    asked = {privilege for request in requests for privilege in needed(request)}
    assert asked == {each.name for each in PRIVILEGES if not each.name.startswith("System.")}
    bare = AttachVgpus(worker="worker-1", vm="vm-1", vgpus=())
    assert needed(bare) == ("VirtualMachine.Config.AddRemoveDevice",)


def test_a_user_with_the_printed_role_may_do_everything(world: World) -> None:
    checked(world, NODE, *power_on(world, "worker-1", "worker-2"))


def test_one_question_is_asked_however_many_vms_there_are_and_none_without_one(world: World) -> None:
    checked(world, *power_on(world, "worker-1", "worker-2", "worker-3"))
    assert calls(world) == 1
    checked(world, NODE)
    assert calls(world) == 1


def test_a_missing_privilege_ends_it_with_5_and_is_named_with_its_workers(world: World) -> None:
    narrow(world, "VirtualMachine.Interact.Suspend")
    suspend = SuspendVm(worker="worker-4", vm=world.estate.vms["worker-4"].moid)
    with pytest.raises(UnreachableError) as caught:
        checked(world, NODE, *power_on(world, "worker-1", "worker-2"), suspend)
    assert caught.value.exit_code is ExitCode.UNREACHABLE
    missing = "VirtualMachine.Interact.PowerOn on worker-1 worker-2"
    assert caught.value.message == f"vCenter sim:443 does not give this user {missing}. Nothing was changed."
    assert caught.value.hint == "vgpuctl rights vcenter prints the privileges that vgpuctl needs, as govc commands."


def test_a_vcenter_that_cannot_be_asked_will_say_it_itself(world: World) -> None:
    narrow(world)
    world.calls.faults.add(
        Rule(server=VCENTER, method="HasPrivilegeOnEntities", effect=Effect(how=How.FAIL, what="NotSupported"))
    )
    checked(world, *power_on(world, "worker-1"))


def test_a_vcenter_that_does_not_answer_is_asked_again(world: World) -> None:
    world.calls.faults.add(Rule(server=VCENTER, method="HasPrivilegeOnEntities", effect=Effect(how=How.CUT)))
    with pytest.raises(PassingError):
        checked(world, *power_on(world, "worker-1"))

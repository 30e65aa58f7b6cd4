"""Users with roles at the simulated vCenter: what they see, and what they may do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from tests.support.clients import vcenter_as
from tests.support.fleets import QUARTER
from tests.support.operator import PLACES, ROLE, carry_out, entity_at, printed, role_named
from tests.support.vcenter import PC, attach, view_filter
from vgpuctl.sim.inventory import default_inventory
from vgpuctl.sim.vcenter.collector.collectors import Collector
from vgpuctl.sim.world import World
from vgpuctl.vsphere.rights import PRIVILEGES, Place

Permission = vim.AuthorizationManager.Permission
VM_PRIVILEGES = [each.name for each in PRIVILEGES if each.name.startswith("VirtualMachine.")]


@pytest.fixture
def world() -> World:
    return World(default_inventory(1, 1))


@pytest.fixture
def admin(world: World) -> Any:
    return vcenter_as(world, world.logins.user, world.logins.password)


def operator_of(world: World) -> Any:
    """A session of the user that has no right until it is given one."""
    return vcenter_as(world, world.logins.operator, world.logins.operators_password)


def grant(content: Any, path: str, role: str, user: str, *, propagate: bool = True) -> None:
    number = role_named(content, role).roleId
    given = Permission(principal=user, group=False, roleId=number, propagate=propagate)
    content.authorizationManager.SetEntityPermissions(entity_at(content, path) if path else content.rootFolder, [given])


def seen_by(content: Any, *kinds: Any) -> set[str]:
    """The names that a filter over a view of everything finds."""
    wanted = {kind: ["name"] for kind in kinds or (vim.ManagedEntity,)}
    found = content.propertyCollector.RetrieveContents([view_filter(content, wanted)])
    return {each.propSet[0].val for each in found}


def test_a_user_without_a_permission_cannot_log_in(world: World) -> None:
    with pytest.raises(vim.fault.NoPermission):
        operator_of(world)


def test_the_printed_commands_let_the_user_see_the_workers_their_hosts_and_datastores(world: World, admin: Any) -> None:
    carry_out(admin, printed())
    role = role_named(admin, ROLE)
    assert set(role.privilege) == {*VM_PRIVILEGES, "System.Anonymous", "System.View", "System.Read"}
    operator = operator_of(world)
    workers = set(world.estate.vms)
    stores = {store.name for store in world.estate.places.stores}
    assert seen_by(operator) == {*workers, *stores, "vm", "gpu", "esx-1", "Resources", "datastore"}
    assert seen_by(operator, vim.VirtualMachine) == workers


def test_what_is_not_seen_is_left_out_wherever_it_is_asked_for(world: World, admin: Any) -> None:
    grant(admin, "dc/datastore", "ReadOnly", world.logins.operator)
    operator = operator_of(world)
    assert seen_by(operator, vim.VirtualMachine, vim.HostSystem) == set()
    find = operator.searchIndex
    assert find.FindByInventoryPath("dc/vm/worker-1") is None
    assert find.FindByDnsName(None, "worker-1", True) is None
    assert find.FindByInventoryPath("dc/datastore") == entity_at(admin, "dc/datastore")
    worker = vim.VirtualMachine(entity_at(admin, "dc/vm/worker-1")._moId, operator.rootFolder._stub)
    spec = PC.FilterSpec(
        propSet=[PC.PropertySpec(type=vim.VirtualMachine, pathSet=["name"])], objectSet=[PC.ObjectSpec(obj=worker)]
    )
    assert operator.propertyCollector.RetrieveContents([spec]) == []
    with pytest.raises(vim.fault.NoPermission) as caught:
        print(worker.name)
    assert (caught.value.privilegeId, caught.value.object) == ("System.View", worker)
    with pytest.raises(vim.fault.NoPermission):
        operator.viewManager.CreateListView([worker])


def test_a_stream_gains_and_loses_what_its_user_sees(world: World, admin: Any) -> None:
    user, every = world.logins.operator, len(world.estate.vms)
    grant(admin, "dc/datastore", "ReadOnly", user)
    operator = operator_of(world)
    created = operator.propertyCollector.CreateFilter(view_filter(operator, {vim.VirtualMachine: ["name"]}), False)
    (scope,) = [
        each.subject.filters[created._moId]
        for session in world.center.sessions.all()
        for each in session.objects.values()
        if isinstance(each.subject, Collector)
    ]

    def news() -> Counter[str]:
        updates, more = scope.drain(None)
        assert not more
        return Counter(kind for update in updates for kind in re.findall(r"<kind>(\w+)</kind>", update))

    assert news() == {}
    grant(admin, "dc/vm", "ReadOnly", user)
    assert news() == {"enter": every}
    admin.authorizationManager.RemoveEntityPermission(entity_at(admin, "dc/vm"), user, False)
    assert news() == {"leave": every}


ACTIONS: dict[str, Callable[[Any], Any]] = {
    "VirtualMachine.Interact.PowerOn": lambda vm: vm.PowerOn(),
    "VirtualMachine.Interact.Suspend": lambda vm: vm.Suspend(),
    "VirtualMachine.Interact.PowerOff": lambda vm: vm.PowerOff(),
    "VirtualMachine.Config.AddRemoveDevice": lambda vm: vm.Reconfigure(attach(QUARTER)),
    "VirtualMachine.Config.Resource": lambda vm: vm.Reconfigure(attach(QUARTER)),
    "VirtualMachine.Config.AdvancedConfig": lambda vm: vm.Reconfigure(
        vim.vm.ConfigSpec(extraConfig=[vim.option.OptionValue(key="a", value="b")])
    ),
}


@pytest.mark.parametrize("privilege", VM_PRIVILEGES)
def test_each_method_demands_its_privilege_at_the_call(world: World, admin: Any, privilege: str) -> None:
    carry_out(admin, printed())
    operator = operator_of(world)
    worker = entity_at(operator, "dc/vm/worker-1")
    role = role_named(admin, ROLE)
    admin.authorizationManager.UpdateAuthorizationRole(
        role.roleId, ROLE, [each for each in VM_PRIVILEGES if each != privilege]
    )
    with pytest.raises(vim.fault.NoPermission) as caught:
        ACTIONS[privilege](worker)
    assert (caught.value.privilegeId, caught.value.object) == (privilege, worker)
    assert not world.estate.tasks, "it is refused before there is a task"
    admin.authorizationManager.UpdateAuthorizationRole(role.roleId, ROLE, [privilege, *VM_PRIVILEGES])
    try:
        ACTIONS[privilege](worker)
    except vmodl.MethodFault as fault:
        assert not isinstance(fault, vim.fault.NoPermission)


def test_a_user_is_told_its_privileges_truly(world: World, admin: Any) -> None:
    carry_out(admin, printed())
    operator, user = operator_of(world), world.logins.operator
    places = {Place.WORKERS: "--workers", Place.HOSTS: "--hosts", Place.DATASTORES: "--datastores"}
    below = {Place.WORKERS: "dc/vm/worker-1", Place.HOSTS: "dc/host/gpu/esx-1", Place.DATASTORES: "dc/datastore"}
    session = operator.sessionManager.currentSession.key
    for place, option in places.items():
        entities = [entity_at(admin, PLACES[option]), entity_at(admin, below[place])]
        needed = [each.name for each in PRIVILEGES if each.place is place]
        for found in operator.authorizationManager.HasPrivilegeOnEntities(
            entities, session, [*needed, "Host.Config.Power"]
        ):
            granted = {each.privId for each in found.privAvailability if each.isGranted}
            assert granted == set(needed), place
        for result in admin.authorizationManager.FetchUserPrivilegeOnEntities(entities, user):
            assert set(needed) <= set(result.privileges)
    root = admin.authorizationManager.FetchUserPrivilegeOnEntities([admin.rootFolder], user)
    assert root[0].privileges == []


def test_a_permission_on_an_object_takes_the_place_of_what_it_inherits(world: World, admin: Any) -> None:
    user = world.logins.operator
    grant(admin, "", "ReadOnly", user)
    grant(admin, "dc/vm/worker-1", "NoAccess", user)
    operator = operator_of(world)
    assert "worker-1" not in seen_by(operator, vim.VirtualMachine)
    assert "worker-2" in seen_by(operator, vim.VirtualMachine)
    grant(admin, "dc/vm", "NoAccess", user)
    assert "worker-2" in seen_by(operator, vim.VirtualMachine), "a VM inherits from its host, too"
    grant(admin, "dc/host/gpu", "NoAccess", user)
    assert seen_by(operator, vim.VirtualMachine, vim.HostSystem) == set()


def test_a_permission_that_does_not_propagate_holds_on_its_object_alone(world: World, admin: Any) -> None:
    user = world.logins.operator
    grant(admin, "dc/vm", "ReadOnly", user, propagate=False)
    assert seen_by(operator_of(world), vim.VirtualMachine, vim.Folder) == {"vm"}


def test_roles_are_made_changed_and_removed(admin: Any) -> None:
    manager = admin.authorizationManager
    number = manager.AddAuthorizationRole("night", ["VirtualMachine.Interact.PowerOn"])
    with pytest.raises(vim.fault.AlreadyExists):
        manager.AddAuthorizationRole("night", [])
    with pytest.raises(vmodl.fault.InvalidArgument):
        manager.AddAuthorizationRole("typo", ["VirtualMachine.Interact.PowerOnn"])
    with pytest.raises(vmodl.fault.InvalidArgument):
        manager.UpdateAuthorizationRole(role_named(admin, "Admin").roleId, "Admin", [])
    manager.UpdateAuthorizationRole(number, "evening", ["VirtualMachine.Interact.Suspend"])
    assert "VirtualMachine.Interact.Suspend" in role_named(admin, "evening").privilege
    with pytest.raises(vim.fault.NotFound):
        manager.RemoveAuthorizationRole(7, False)
    manager.RemoveAuthorizationRole(number, True)
    assert "evening" not in {role.name for role in manager.roleList}


def test_a_role_in_use_goes_only_with_its_permissions(world: World, admin: Any) -> None:
    carry_out(admin, printed())
    role = role_named(admin, ROLE)
    with pytest.raises(vim.fault.RemoveFailed):
        admin.authorizationManager.RemoveAuthorizationRole(role.roleId, True)
    assert [each.principal for each in admin.authorizationManager.RetrieveRolePermissions(role.roleId)] == [
        world.logins.operator
    ]
    admin.authorizationManager.RemoveAuthorizationRole(role.roleId, False)
    permissions = admin.authorizationManager.RetrieveEntityPermissions(entity_at(admin, "dc/vm"), False)
    assert permissions == []


def test_one_administrator_is_left_and_a_user_must_exist(world: World, admin: Any) -> None:
    manager = admin.authorizationManager
    with pytest.raises(vim.fault.AuthMinimumAdminPermission):
        manager.RemoveEntityPermission(admin.rootFolder, world.logins.user, False)
    with pytest.raises(vim.fault.AuthMinimumAdminPermission):
        grant(admin, "", "ReadOnly", world.logins.user)
    with pytest.raises(vim.fault.UserNotFound):
        grant(admin, "", "ReadOnly", "nobody@vsphere.local")
    with pytest.raises(vim.fault.NotFound):
        manager.RemoveEntityPermission(admin.rootFolder, world.logins.operator, False)
    reader = vcenter_as(world, world.logins.reader, world.logins.readers_password)
    with pytest.raises(vim.fault.NoPermission) as caught:
        grant(reader, "dc/vm", "Admin", world.logins.reader)
    assert caught.value.privilegeId == "Authorization.ModifyPermissions"
    with pytest.raises(vim.fault.NoPermission):
        reader.authorizationManager.AddAuthorizationRole("more", [])

"""Sessions at the simulated vCenter: who is in, for how long, and what they may do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyVim.connect import Disconnect
from pyVmomi import vim, vmodl

from tests.support.fleets import QUARTER
from tests.support.vcenter import PC, add_vgpu, connect, content_of, view_filter, vm_named
from vgpuctl.testing import Estate

HALF_AN_HOUR_S = 1800.0


@pytest.fixture
def reader(estate: Estate) -> Iterator[Any]:
    instance = connect(estate, estate.logins.reader, estate.logins.readers_password)
    yield instance
    Disconnect(instance)


def test_a_session_without_a_call_ends_after_half_an_hour_and_takes_its_things_along(
    estate: Estate, client: Any
) -> None:
    content = content_of(client)
    view = content.viewManager.CreateContainerView(content.rootFolder, [], True)
    estate.advance(HALF_AN_HOUR_S - 100)
    assert view.view
    estate.advance(HALF_AN_HOUR_S - 100)
    assert client.CurrentTime()
    estate.advance(HALF_AN_HOUR_S)
    with pytest.raises(vim.fault.NotAuthenticated):
        client.CurrentTime()
    other = connect(estate)
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vim.view.ContainerView(view._moId, other._stub).Destroy()
    Disconnect(other)
    client._stub.DropConnections()


def test_who_waits_for_an_update_is_not_idle(estate: Estate, client: Any) -> None:
    content = content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(view_filter(content, {vim.VirtualMachine: ["runtime.powerState"]}), False)
    version = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0)).version
    waiting, answers = in_the_background(lambda: collector.WaitForUpdatesEx(version, None))
    (session,) = estate.within(lambda world: world.center.sessions.all())
    while not session.answering:
        waiting.join(0.01)
    estate.advance(3 * HALF_AN_HOUR_S)
    estate.within(lambda world: world.estate.power_on(world.estate.vms["worker-1"]))
    waiting.join(10)
    assert [type(answer) for answer in answers] == [PC.UpdateSet]


def test_a_session_can_be_ended_by_another_with_all_its_waits(estate: Estate, client: Any) -> None:
    other = connect(estate)
    content = content_of(other)
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(view_filter(content, {vim.VirtualMachine: ["name"]}), False)
    version = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0)).version
    key = content.sessionManager.currentSession.key
    waiting, answers = in_the_background(lambda: collector.WaitForUpdatesEx(version, None))
    manager = content_of(client).sessionManager
    assert manager.SessionIsActive(key, estate.logins.user)
    assert {session.key for session in manager.sessionList} == {key, manager.currentSession.key}
    manager.TerminateSession([key])
    waiting.join(10)
    assert type(answers[0]) in (vmodl.fault.RequestCanceled, vim.fault.NotAuthenticated)
    assert not manager.SessionIsActive(key, estate.logins.user)
    with pytest.raises(vim.fault.NotAuthenticated):
        other.CurrentTime()
    other._stub.DropConnections()


def test_only_sessions_of_others_that_exist_can_be_ended(client: Any) -> None:
    manager = content_of(client).sessionManager
    mine = manager.currentSession.key
    with pytest.raises(vmodl.fault.InvalidArgument):
        manager.TerminateSession([mine])
    with pytest.raises(vim.fault.NotFound):
        manager.TerminateSession(["nobody's"])
    assert manager.currentSession.key == mine


def test_sessions_are_ended_one_after_another_up_to_the_first_that_cannot_be(estate: Estate, client: Any) -> None:
    manager = content_of(client).sessionManager
    others = [connect(estate) for _ in range(2)]
    first, last = (content_of(other).sessionManager.currentSession.key for other in others)
    with pytest.raises(vim.fault.NotFound):
        manager.TerminateSession([first, "nobody's", last])
    assert {session.key for session in manager.sessionList} == {manager.currentSession.key, last}
    with pytest.raises(vmodl.fault.InvalidArgument):
        manager.TerminateSession([last, manager.currentSession.key])
    assert {session.key for session in manager.sessionList} == {manager.currentSession.key}
    for other in others:
        other._stub.DropConnections()


WRITES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "power on": ("VirtualMachine.Interact.PowerOn", lambda vm: vm.PowerOn()),
    "power off": ("VirtualMachine.Interact.PowerOff", lambda vm: vm.PowerOff()),
    "shut down": ("VirtualMachine.Interact.PowerOff", lambda vm: vm.ShutdownGuest()),
    "suspend": ("VirtualMachine.Interact.Suspend", lambda vm: vm.Suspend()),
    "destroy": ("VirtualMachine.Inventory.Delete", lambda vm: vm.Destroy_Task()),
    "add a vGPU": ("VirtualMachine.Config.AddRemoveDevice", lambda vm: add_vgpu(vm, QUARTER)),
    "pin memory": (
        "VirtualMachine.Config.Resource",
        lambda vm: vm.ReconfigVM_Task(vim.vm.ConfigSpec(memoryReservationLockedToMax=True)),
    ),
    "write a note": (
        "VirtualMachine.Config.Rename",
        lambda vm: vm.ReconfigVM_Task(vim.vm.ConfigSpec(annotation="ours")),
    ),
    "what is not simulated either": ("VirtualMachine.Interact.Reset", lambda vm: vm.ResetVM_Task()),
}


@pytest.mark.parametrize(("privilege", "write"), WRITES.values(), ids=WRITES)
def test_who_may_only_read_changes_nothing(
    estate: Estate, reader: Any, privilege: str, write: Callable[[Any], Any]
) -> None:
    vm = vm_named(reader, "worker-1")
    with pytest.raises(vim.fault.NoPermission) as refused:
        write(vm)
    assert (refused.value.object, refused.value.privilegeId) == (vm, privilege)
    assert not estate.within(lambda world: dict(world.estate.tasks))


def test_a_power_on_of_many_asks_for_the_right_on_each(reader: Any) -> None:
    vm = vm_named(reader, "worker-1")
    with pytest.raises(vim.fault.NoPermission) as refused:
        vm.parent.parent.PowerOnMultiVM_Task([vm])
    assert (refused.value.object, refused.value.privilegeId) == (vm, "VirtualMachine.Interact.PowerOn")


def test_who_may_only_read_reads_and_waits_like_anybody(reader: Any, estate: Estate) -> None:
    content = content_of(reader)
    spec = view_filter(content, {vim.VirtualMachine: ["name", "config.hardware.device"]})
    assert len(content.propertyCollector.RetrieveProperties([spec])) == 11
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(spec, False)
    assert len(collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0)).filterSet[0].objectSet) == 11
    assert content.sessionManager.currentSession.userName == estate.logins.reader
    assert vm_named(reader, "worker-1").runtime.powerState == "poweredOff"


def test_a_property_that_one_may_not_read_is_said_to_be_missing(reader: Any, client: Any) -> None:
    manager = content_of(reader).sessionManager
    spec = PC.FilterSpec(
        propSet=[PC.PropertySpec(type=vim.SessionManager, pathSet=["sessionList", "currentSession"])],
        objectSet=[PC.ObjectSpec(obj=manager)],
    )
    (found,) = content_of(reader).propertyCollector.RetrieveProperties([spec])
    assert [one.name for one in found.propSet] == ["currentSession"]
    (missing,) = found.missingSet
    assert (missing.path, type(missing.fault)) == ("sessionList", vim.fault.NoPermission)
    (whole,) = content_of(client).propertyCollector.RetrieveProperties([spec])
    assert not whole.missingSet
    with pytest.raises(vim.fault.NoPermission):
        _ = manager.sessionList


def test_questions_about_rights_are_answered_truthfully(reader: Any, client: Any, estate: Estate) -> None:
    looker, admin = estate.logins.reader, estate.logins.user
    asked = ["System.Read", "VirtualMachine.Interact.PowerOn"]
    vm = vm_named(client, "worker-1")
    content = content_of(client)
    rights = content.authorizationManager
    keys = [content_of(one).sessionManager.currentSession.key for one in (reader, client)]
    for key, expected in zip(keys, ([True, False], [True, True]), strict=True):
        (answer,) = rights.HasPrivilegeOnEntities([vm], key, asked)
        assert [one.isGranted for one in answer.privAvailability] == expected
        assert [one.privId for one in answer.privAvailability] == asked
        assert list(rights.HasPrivilegeOnEntity(vm, key, asked)) == expected
    for user, expected in ((looker, [True, False]), (admin, [True, True])):
        (answer,) = rights.HasUserPrivilegeOnEntities([vm], user, asked)
        assert [one.isGranted for one in answer.privAvailability] == expected
    granted = {one.principal: one.roleId for one in rights.RetrieveEntityPermissions(vm, True)}
    roles = {role.roleId: role for role in rights.roleList}
    assert {user: roles[role].name for user, role in granted.items()} == {admin: "Admin", looker: "ReadOnly"}
    assert set(roles[granted[admin]].privilege) > set(roles[granted[looker]].privilege)
    assert not rights.RetrieveEntityPermissions(vm, False)


def in_the_background(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(call())
        except Exception as error:
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, answers

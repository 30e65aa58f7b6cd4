"""Sessions at the simulated vCenter: who is in, for how long, and what they may do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim, vmodl

from tests.simulators import test_vcenter_wire as wire

PC = vmodl.query.PropertyCollector
HALF_AN_HOUR_S = 1800.0
certificates = wire.certificates
client = wire.client
served = wire.served


@pytest.fixture
def reader(served: wire.Served) -> Iterator[Any]:
    instance = SmartConnect(
        host="127.0.0.1", port=served.port, user=wire.READER, pwd=wire.READERS_PASSWORD, sslContext=served.trust()
    )
    yield instance
    Disconnect(instance)


def pass_time(served: wire.Served, seconds: float) -> None:
    served.do(lambda: served.clock.advance_to(served.clock.now_s + seconds))


def test_a_session_without_a_call_ends_after_half_an_hour_and_takes_its_things_along(
    served: wire.Served, client: Any
) -> None:
    content = wire.content_of(client)
    view = content.viewManager.CreateContainerView(content.rootFolder, [], True)
    pass_time(served, HALF_AN_HOUR_S - 100)
    assert view.view
    pass_time(served, HALF_AN_HOUR_S - 100)
    assert client.CurrentTime()
    pass_time(served, HALF_AN_HOUR_S)
    with pytest.raises(vim.fault.NotAuthenticated):
        client.CurrentTime()
    other = served.connect()
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vim.view.ContainerView(view._moId, other._stub).Destroy()
    Disconnect(other)
    client._stub.DropConnections()


def test_who_waits_for_an_update_is_not_idle(served: wire.Served, client: Any) -> None:
    content = wire.content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(wire.view_filter(content, {vim.VirtualMachine: ["runtime.powerState"]}), False)
    version = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0)).version
    waiting, answers = in_the_background(lambda: collector.WaitForUpdatesEx(version, None))
    (session,) = served.center.sessions.all()
    while not session.answering:
        waiting.join(0.01)
    pass_time(served, 3 * HALF_AN_HOUR_S)
    served.do(lambda: served.estate.power_on(served.estate.vms["worker-1"]))
    waiting.join(10)
    assert [type(answer) for answer in answers] == [PC.UpdateSet]


def test_a_session_can_be_ended_by_another_with_all_its_waits(served: wire.Served, client: Any) -> None:
    other = served.connect()
    content = wire.content_of(other)
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(wire.view_filter(content, {vim.VirtualMachine: ["name"]}), False)
    version = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0)).version
    key = content.sessionManager.currentSession.key
    waiting, answers = in_the_background(lambda: collector.WaitForUpdatesEx(version, None))
    manager = wire.content_of(client).sessionManager
    assert manager.SessionIsActive(key, wire.USER)
    assert {session.key for session in manager.sessionList} == {key, manager.currentSession.key}
    manager.TerminateSession([key])
    waiting.join(10)
    assert type(answers[0]) in (vmodl.fault.RequestCanceled, vim.fault.NotAuthenticated)
    assert not manager.SessionIsActive(key, wire.USER)
    with pytest.raises(vim.fault.NotAuthenticated):
        other.CurrentTime()
    other._stub.DropConnections()


def test_only_sessions_of_others_that_exist_can_be_ended(served: wire.Served, client: Any) -> None:
    manager = wire.content_of(client).sessionManager
    mine = manager.currentSession.key
    with pytest.raises(vmodl.fault.InvalidArgument):
        manager.TerminateSession([mine])
    with pytest.raises(vim.fault.NotFound):
        manager.TerminateSession(["nobody's"])
    assert manager.currentSession.key == mine


WRITES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "power on": ("VirtualMachine.Interact.PowerOn", lambda vm: vm.PowerOn()),
    "power off": ("VirtualMachine.Interact.PowerOff", lambda vm: vm.PowerOff()),
    "shut down": ("VirtualMachine.Interact.PowerOff", lambda vm: vm.ShutdownGuest()),
    "suspend": ("VirtualMachine.Interact.Suspend", lambda vm: vm.Suspend()),
    "destroy": ("VirtualMachine.Inventory.Delete", lambda vm: vm.Destroy_Task()),
    "add a vGPU": ("VirtualMachine.Config.AddRemoveDevice", lambda vm: wire.add_vgpu(vm, wire.QUARTER)),
    "pin memory": (
        "VirtualMachine.Config.Resource",
        lambda vm: vm.ReconfigVM_Task(vim.vm.ConfigSpec(memoryReservationLockedToMax=True)),
    ),
    "what is not simulated either": ("VirtualMachine.Interact.Reset", lambda vm: vm.ResetVM_Task()),
}


@pytest.mark.parametrize(("privilege", "write"), WRITES.values(), ids=WRITES)
def test_who_may_only_read_changes_nothing(
    served: wire.Served, reader: Any, privilege: str, write: Callable[[Any], Any]
) -> None:
    vm = wire.vm_named(reader, "worker-1")
    with pytest.raises(vim.fault.NoPermission) as refused:
        write(vm)
    assert (refused.value.object, refused.value.privilegeId) == (vm, privilege)
    assert not served.do(lambda: dict(served.estate.tasks))


def test_a_power_on_of_many_asks_for_the_right_on_each(reader: Any) -> None:
    vm = wire.vm_named(reader, "worker-1")
    with pytest.raises(vim.fault.NoPermission) as refused:
        vm.parent.parent.PowerOnMultiVM_Task([vm])
    assert (refused.value.object, refused.value.privilegeId) == (vm, "VirtualMachine.Interact.PowerOn")


def test_who_may_only_read_reads_and_waits_like_anybody(reader: Any) -> None:
    content = wire.content_of(reader)
    spec = wire.view_filter(content, {vim.VirtualMachine: ["name", "config.hardware.device"]})
    assert len(content.propertyCollector.RetrieveProperties([spec])) == 11
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(spec, False)
    assert len(collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0)).filterSet[0].objectSet) == 11
    assert content.eventManager.QueryEvents(vim.event.EventFilterSpec())
    assert content.sessionManager.currentSession.userName == wire.READER
    assert wire.vm_named(reader, "worker-1").runtime.powerState == "poweredOff"


def test_a_property_that_one_may_not_read_is_said_to_be_missing(reader: Any, client: Any) -> None:
    manager = wire.content_of(reader).sessionManager
    spec = PC.FilterSpec(
        propSet=[PC.PropertySpec(type=vim.SessionManager, pathSet=["sessionList", "currentSession"])],
        objectSet=[PC.ObjectSpec(obj=manager)],
    )
    (found,) = wire.content_of(reader).propertyCollector.RetrieveProperties([spec])
    assert [one.name for one in found.propSet] == ["currentSession"]
    (missing,) = found.missingSet
    assert (missing.path, type(missing.fault)) == ("sessionList", vim.fault.NoPermission)
    (whole,) = wire.content_of(client).propertyCollector.RetrieveProperties([spec])
    assert not whole.missingSet
    with pytest.raises(vim.fault.NoPermission):
        _ = manager.sessionList


def test_questions_about_rights_are_answered_truthfully(reader: Any, client: Any) -> None:
    asked = ["System.Read", "VirtualMachine.Interact.PowerOn"]
    vm = wire.vm_named(client, "worker-1")
    content = wire.content_of(client)
    rights = content.authorizationManager
    keys = [wire.content_of(one).sessionManager.currentSession.key for one in (reader, client)]
    for key, expected in zip(keys, ([True, False], [True, True]), strict=True):
        (answer,) = rights.HasPrivilegeOnEntities([vm], key, asked)
        assert [one.isGranted for one in answer.privAvailability] == expected
        assert [one.privId for one in answer.privAvailability] == asked
        assert list(rights.HasPrivilegeOnEntity(vm, key, asked)) == expected
    for user, expected in ((wire.READER, [True, False]), (wire.USER, [True, True])):
        (answer,) = rights.HasUserPrivilegeOnEntities([vm], user, asked)
        assert [one.isGranted for one in answer.privAvailability] == expected
    granted = {one.principal: one.roleId for one in rights.RetrieveEntityPermissions(vm, True)}
    roles = {role.roleId: role for role in rights.roleList}
    assert {user: roles[role].name for user, role in granted.items()} == {wire.USER: "Admin", wire.READER: "ReadOnly"}
    assert set(roles[granted[wire.USER]].privilege) > set(roles[granted[wire.READER]].privilege)
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

"""What has happened at the simulated vCenter: events, tasks, and their collectors."""

from __future__ import annotations

from typing import Any

import pytest
from pyVim.connect import Disconnect
from pyVmomi import vim, vmodl

from tests.support.fleets import QUARTER, WHOLE
from tests.support.physics import kind, off, on, worker, world_with
from tests.support.vcenter import PC, add_vgpu, connect, content_of, vm_named, wait_for
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate

EVENTS = vim.event.EventFilterSpec
TASKS = vim.TaskFilterSpec


def events_of(client: Any, vm: Any, *kinds: str) -> list[Any]:
    wanted = EVENTS(eventTypeId=list(kinds))
    wanted.entity = EVENTS.ByEntity(entity=vm, recursion="self")
    return list(content_of(client).eventManager.QueryEvents(wanted))


def kinds(events: list[Any]) -> list[str]:
    return [type(event).__name__.rpartition(".")[2] for event in events]


def test_each_change_is_told_with_its_user_and_its_place(client: Any, estate: Estate) -> None:
    vm = vm_named(client, "worker-1")
    add_vgpu(vm, QUARTER)
    for step in (vm.PowerOn, vm.Suspend, vm.PowerOn, vm.PowerOff):
        assert wait_for(step()).state == "success"
    told = events_of(client, vm)
    assert kinds(told) == [
        "VmReconfiguredEvent",
        *("VmStartingEvent", "VmPoweredOnEvent"),
        *("VmSuspendingEvent", "VmSuspendedEvent"),
        *("VmResumingEvent", "VmPoweredOnEvent"),
        *("VmStoppingEvent", "VmPoweredOffEvent"),
    ]
    assert {event.userName for event in told} == {estate.logins.user}
    assert [event.key for event in told] == sorted(event.key for event in told)
    place = told[1]
    assert (place.vm.vm, place.host.name, place.datacenter.name) == (vm, "esx-1", "dc")
    assert place.fullFormattedMessage == "worker-1 on host esx-1 in dc is starting"


def test_what_a_guest_does_by_itself_is_nobodys_deed(client: Any, estate: Estate) -> None:
    vm = vm_named(client, "worker-1")
    wait_for(vm.PowerOn())
    estate.advance(5)
    vm.ShutdownGuest()
    estate.advance(5)
    last = events_of(client, vm)[-1]
    assert (kinds([last]), last.userName) == (["VmPoweredOffEvent"], "")


def test_an_event_names_the_host_of_its_moment_whenever_it_is_read() -> None:
    world = world_with(*(worker(name, vgpus=(WHOLE,)) for name in "ab"), hosts=2, drs=True)
    for deed, name in ((on, "a"), (off, "a"), (on, "b"), (on, "a")):
        assert kind(deed(world, name)) is None
    started = [event for event in world.center.history.events if kinds([event]) == ["VmPoweredOnEvent"]]
    assert [(event.vm.name, event.host.name) for event in started] == [("a", "esx-1"), ("b", "esx-1"), ("a", "esx-2")]


def test_a_refused_power_on_is_told_with_its_reason(client: Any) -> None:
    workers = [vm_named(client, f"worker-{number}") for number in (1, 2, 3)]
    for vm in workers:
        add_vgpu(vm, WHOLE)
        wait_for(vm.PowerOn())
    (failed,) = events_of(client, workers[2], "VmFailedToPowerOnEvent")
    assert isinstance(failed.reason, vim.fault.InsufficientGraphicsResourcesFault)
    assert "graphics resource" in failed.fullFormattedMessage


def test_clones_and_removals_are_told(client: Any) -> None:
    source = vm_named(client, "worker-1")
    spec = vim.vm.CloneSpec(location=vim.vm.RelocateSpec(), template=False, powerOn=False)
    copy = wait_for(source.CloneVM_Task(source.parent, "copy", spec)).result
    (cloned,) = events_of(client, copy)
    assert (type(cloned), cloned.sourceVm.vm) == (vim.event.VmClonedEvent, source)
    wait_for(copy.Destroy_Task())
    everything = content_of(client).eventManager.QueryEvents(EVENTS())
    assert kinds(list(everything))[-2:] == ["VmClonedEvent", "VmRemovedEvent"]


def test_comings_and_goings_of_users_are_told(estate: Estate, client: Any) -> None:
    manager = content_of(client).eventManager
    with pytest.raises(vim.fault.InvalidLogin):
        connect(estate, user="eve")
    other = connect(estate)
    Disconnect(other)
    told = list(manager.QueryEvents(EVENTS()))
    assert kinds(told) == [
        "UserLoginSessionEvent",
        "BadUsernameSessionEvent",
        "UserLoginSessionEvent",
        "UserLogoutSessionEvent",
    ]
    assert (told[1].userName, told[0].ipAddress) == ("eve", "127.0.0.1")
    by_user = EVENTS.ByUsername(systemUser=False, userList=["eve"])
    assert kinds(manager.QueryEvents(EVENTS(userName=by_user))) == ["BadUsernameSessionEvent"]


def test_a_filter_says_which_events(client: Any, estate: Estate) -> None:
    manager = content_of(client).eventManager
    vm = vm_named(client, "worker-1")
    wait_for(vm.PowerOn())
    estate.advance(60)
    noon = estate.within(lambda world: world.clock.utc())
    wait_for(vm.Suspend())
    later = EVENTS(time=EVENTS.ByTime(beginTime=noon))
    assert kinds(manager.QueryEvents(later)) == ["VmSuspendingEvent", "VmSuspendedEvent"]
    sessions = EVENTS(eventTypeId=["SessionEvent"])
    assert kinds(manager.QueryEvents(sessions)) == ["UserLoginSessionEvent"]
    folder = EVENTS(entity=EVENTS.ByEntity(entity=vm.parent, recursion="all"))
    assert len(manager.QueryEvents(folder)) == 4
    host = EVENTS(entity=EVENTS.ByEntity(entity=vm.runtime.host, recursion="self"), category=["error"])
    assert not manager.QueryEvents(host)


def test_a_collector_reads_on_and_back_and_shows_its_newest_page(client: Any) -> None:
    vm = vm_named(client, "worker-1")
    for step in (vm.PowerOn, vm.PowerOff):
        wait_for(step())
    manager = content_of(client).eventManager
    collector = manager.CreateCollectorForEvents(EVENTS(eventTypeId=["VmEvent"], maxCount=2))
    whole = ["VmStartingEvent", "VmPoweredOnEvent", "VmStoppingEvent", "VmPoweredOffEvent"]
    assert kinds(collector.latestPage) == whole[:1:-1]
    assert kinds(collector.ReadNextEvents(3)) == whole[:3]
    assert kinds(collector.ReadNextEvents(3)) == whole[3:]
    assert not collector.ReadNextEvents(3)
    collector.RewindCollector()
    assert not collector.ReadPreviousEvents(3)
    assert kinds(collector.ReadNextEvents(1)) == whole[:1]
    collector.ResetCollector()
    assert kinds(collector.ReadPreviousEvents(9)) == whole[1::-1]
    with pytest.raises(vmodl.fault.InvalidArgument):
        collector.SetCollectorPageSize(-1)
    collector.DestroyCollector()
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        collector.ReadNextEvents(1)


@pytest.mark.parametrize("of", ["events", "tasks"])
def test_who_waits_for_a_newest_page_is_woken_by_news(client: Any, of: str) -> None:
    content = content_of(client)
    if of == "events":
        history = content.eventManager.CreateCollectorForEvents(EVENTS())
    else:
        history = content.taskManager.CreateCollectorForTasks(TASKS())
    collector = content.propertyCollector.CreatePropertyCollector()
    latest = PC.PropertySpec(type=type(history), pathSet=["latestPage"])
    collector.CreateFilter(PC.FilterSpec(propSet=[latest], objectSet=[PC.ObjectSpec(obj=history)]), False)
    first = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0))
    wait_for(vm_named(client, "worker-1").PowerOn())
    news = collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=10))
    assert news.filterSet[0].objectSet[0].changeSet[0].val


def test_there_is_an_end_to_how_much_is_kept_and_how_many_collect(client: Any, estate: Estate) -> None:
    def note_many(world: World) -> None:
        for _ in range(1100):
            world.center.history.record("UserLoginSessionEvent", "x", ipAddress="", userAgent="", locale="")

    estate.within(note_many)
    manager = content_of(client).eventManager
    assert len(manager.QueryEvents(EVENTS())) == 1000
    for _ in range(manager.maxCollector):
        manager.CreateCollectorForEvents(EVENTS())
    with pytest.raises(vim.fault.InvalidState):
        manager.CreateCollectorForEvents(EVENTS())


def test_tasks_are_remembered_with_who_began_them(client: Any, estate: Estate) -> None:
    manager = content_of(client).taskManager
    vms = [vm_named(client, f"worker-{number}") for number in (1, 2)]
    wait_for(vms[0].PowerOn())
    wait_for(vms[0].PowerOn())
    wait_for(vms[1].PowerOn())
    assert [task.info.entity for task in manager.recentTask] == [vms[0], vms[0], vms[1]]
    assert manager.recentTask[0].info.reason.userName == estate.logins.user
    estate.advance(700)
    assert not manager.recentTask
    of_one = TASKS(entity=TASKS.ByEntity(entity=vms[0], recursion="self"), state=["error"])
    (failed,) = manager.CreateCollectorForTasks(of_one).ReadNextTasks(10)
    assert (failed.entity, failed.state) == (vms[0], "error")
    everything = manager.CreateCollectorForTasks(TASKS())
    assert [info.state for info in everything.ReadPreviousTasks(10)] == ["success", "error", "success"]
    labels = {one.key: one.label for one in manager.description.methodInfo}
    assert labels["VirtualMachine.powerOn"] == "Power On virtual machine"

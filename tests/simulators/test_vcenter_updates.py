"""Waiting at the simulated vCenter for what changes: WaitForUpdatesEx under pyVmomi."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from tests.support.fleets import WHOLE
from tests.support.vcenter import PC, add_vgpu, content_of, values, view_filter, vm_named, wait_for
from vgpuctl.testing import Estate


def test_updates_say_enter_modify_and_leave_with_what_changed(estate: Estate, client: Any) -> None:
    content = content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    tasks = ["info.state", "info.entity", "info.descriptionId", "info.error"]
    collector.CreateFilter(view_filter(content, {vim.VirtualMachine: ["name", "runtime.powerState"]}, tasks), False)
    first = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0))
    assert [update.kind for update in first.filterSet[0].objectSet] == ["enter"] * 11
    assert collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=0)) is None

    estate.freeze()
    vm = vm_named(client, "worker-1")
    task = vm.PowerOn()
    entered = collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=10))
    (update,) = entered.filterSet[0].objectSet
    assert (update.kind, update.obj) == ("enter", task)
    assert values(update) == {
        "info.state": "queued",
        "info.entity": vm,
        "info.descriptionId": "VirtualMachine.powerOn",
    }
    estate.advance(10)
    done = collector.WaitForUpdatesEx(entered.version, PC.WaitOptions(maxWaitSeconds=10))
    changed = {update.obj: (update.kind, values(update)) for update in done.filterSet[0].objectSet}
    assert changed == {
        task: ("modify", {"info.state": "success"}),
        vm: ("modify", {"runtime.powerState": "poweredOn"}),
    }
    estate.advance(700)
    gone = collector.WaitForUpdatesEx(done.version, PC.WaitOptions(maxWaitSeconds=10))
    assert [(update.kind, update.obj) for update in gone.filterSet[0].objectSet] == [("leave", task)]


def test_a_wait_ends_when_something_changes_and_not_before(client: Any) -> None:
    content = content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(view_filter(content, {vim.HostSystem: ["config.graphicsInfo"]}), False)
    version = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=10)).version
    vm = vm_named(client, "worker-1")
    add_vgpu(vm, WHOLE)
    answers: list[Any] = []
    waiting = threading.Thread(target=lambda: answers.append(collector.WaitForUpdatesEx(version, None)))
    waiting.start()
    assert wait_for(vm.PowerOn()).state == "success"
    waiting.join(10)
    cards = answers[0].filterSet[0].objectSet[0].changeSet[0].val
    assert [list(card.vm) for card in cards] == [[vm], []]


def test_a_lost_answer_is_given_again_and_a_made_up_version_refused(client: Any) -> None:
    content = content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(view_filter(content, {vim.VirtualMachine: ["runtime.powerState"]}), False)
    first = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0))
    wait_for(vm_named(client, "worker-1").PowerOn())
    answers = [collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=10)) for _ in range(2)]
    assert answers[0].version == answers[1].version
    assert str(answers[0].filterSet[0].objectSet) == str(answers[1].filterSet[0].objectSet)
    with pytest.raises(vmodl.query.InvalidCollectorVersion):
        collector.WaitForUpdatesEx("77", None)
    again = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0))
    assert len(again.filterSet[0].objectSet) == 11


def test_updates_come_in_pieces_where_the_client_wants_few(client: Any) -> None:
    content = content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(view_filter(content, {vim.VirtualMachine: ["name"]}), False)
    version, sizes, truncated = "", [], True
    while truncated:
        updates = collector.WaitForUpdatesEx(version, PC.WaitOptions(maxWaitSeconds=0, maxObjectUpdates=4))
        version, truncated = updates.version, bool(updates.truncated)
        sizes.append(len(updates.filterSet[0].objectSet))
    assert sizes == [4, 4, 3]


def test_one_limit_holds_for_all_filters_of_a_collector(client: Any) -> None:
    content = content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    for kind in (vim.VirtualMachine, vim.HostSystem):
        collector.CreateFilter(view_filter(content, {kind: ["name"]}), False)
    few = PC.WaitOptions(maxWaitSeconds=0, maxObjectUpdates=11)
    first = collector.WaitForUpdatesEx("", few)
    assert ([len(one.objectSet) for one in first.filterSet], first.truncated) == ([11], True)
    second = collector.WaitForUpdatesEx(first.version, few)
    assert ([len(one.objectSet) for one in second.filterSet], bool(second.truncated)) == ([1], False)


@pytest.mark.parametrize("options", [{"maxWaitSeconds": -1}, {"maxObjectUpdates": 0}, {"maxObjectUpdates": -5}])
def test_a_wait_for_less_than_nothing_is_refused(client: Any, options: dict[str, int]) -> None:
    collector = content_of(client).propertyCollector.CreatePropertyCollector()
    with pytest.raises(vmodl.fault.InvalidArgument):
        collector.WaitForUpdatesEx("", PC.WaitOptions(**options))


def test_what_was_reached_by_a_view_leaves_when_the_view_is_destroyed(client: Any) -> None:
    content = content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    spec = view_filter(content, {vim.HostSystem: ["name"]})
    collector.CreateFilter(spec, False)
    first = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0))
    spec.objectSet[0].obj.DestroyView()
    second = collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=0))
    assert [update.kind for update in second.filterSet[0].objectSet] == ["leave"]


def test_filters_and_collectors_are_gone_once_destroyed(client: Any) -> None:
    content = content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    made = collector.CreateFilter(view_filter(content, {vim.HostSystem: ["name"]}), False)
    assert collector.filter == [made]
    made.DestroyPropertyFilter()
    assert not collector.filter
    assert collector.CheckForUpdates("") is None
    other = collector.CreateFilter(view_filter(content, {vim.HostSystem: ["name"]}), False)
    collector.DestroyPropertyCollector()
    for gone in (made.DestroyPropertyFilter, other.DestroyPropertyFilter, collector.DestroyPropertyCollector):
        with pytest.raises(vmodl.fault.ManagedObjectNotFound):
            gone()


def waits(collector: Any, version: str) -> tuple[threading.Thread, list[type[Exception]]]:
    """A client that waits without an end, and the refusal with which its wait has ended."""
    refused: list[type[Exception]] = []

    def wait() -> None:
        try:
            collector.WaitForUpdatesEx(version, None)
        except Exception as error:
            refused.append(type(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    return waiting, refused


def test_a_wait_can_be_canceled(client: Any) -> None:
    content = content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(view_filter(content, {vim.VirtualMachine: ["name"]}), False)
    version = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0)).version
    waiting, refused = waits(collector, version)
    while waiting.is_alive():
        collector.CancelWaitForUpdates()
        waiting.join(0.01)
    assert refused == [vmodl.fault.RequestCanceled]


def test_a_list_view_brings_tasks_in_and_lets_them_go(client: Any) -> None:
    content = content_of(client)
    tasks = [vm_named(client, f"worker-{number}").PowerOn() for number in (1, 2)]
    view = content.viewManager.CreateListView(tasks[:1])
    collector = content.propertyCollector.CreatePropertyCollector()
    walk = PC.TraversalSpec(type=vim.view.ListView, path="view")
    spec = PC.FilterSpec(
        propSet=[PC.PropertySpec(type=vim.Task, pathSet=["info.entityName"])],
        objectSet=[PC.ObjectSpec(obj=view, skip=True, selectSet=[walk])],
    )
    collector.CreateFilter(spec, False)
    first = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=10))
    assert view.ModifyListView(add=[tasks[1], vim.Task("task-99")], remove=[tasks[0]]) == [vim.Task("task-99")]
    second = collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=10))
    kinds = {update.obj: update.kind for update in second.filterSet[0].objectSet}
    assert kinds == {tasks[0]: "leave", tasks[1]: "enter"}


def test_a_session_that_ends_ends_its_waits(estate: Estate, client: Any) -> None:
    content = content_of(client)
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(view_filter(content, {vim.VirtualMachine: ["name"]}), False)
    version = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=0)).version
    waiting, refused = waits(collector, version)
    estate.within(lambda world: world.center.sessions.end_all())
    waiting.join(10)
    assert refused
    assert refused[0] in (vmodl.fault.RequestCanceled, vim.fault.NotAuthenticated)

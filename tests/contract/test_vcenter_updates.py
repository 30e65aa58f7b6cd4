"""WaitForUpdatesEx: versions, pieces, timeouts and endings, on our vCenter and vcsim."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from tests.support.fleets import QUARTER
from tests.support.peers.processes import until
from tests.support.peers.vcenters import Client, Vcenter, through_view
from tests.support.vcenter import PC, attach
from vgpuctl.vsphere.partial_updates import apply

PCI = vim.vm.device.VirtualPCIPassthrough
POWER = {vim.VirtualMachine: ["name", "runtime.powerState"]}


class Follower:
    """One collector of its own, with one filter, read version by version."""

    def __init__(self, client: Client, spec: Any) -> None:
        self.collector = client.collector.CreatePropertyCollector()
        self.collector.CreateFilter(spec, False)
        self.version = ""

    def next(self, wait_s: int | None = 10, most: int | None = None) -> Any:
        options = PC.WaitOptions(maxWaitSeconds=wait_s, maxObjectUpdates=most)
        update = self.collector.WaitForUpdatesEx(self.version, options)
        self.version = update.version if update else self.version
        return update

    def changes(self, wait_s: int | None = 10) -> list[tuple[str, Any, dict[str, Any]]]:
        update = self.next(wait_s)
        objects = [one for part in (update.filterSet if update else ()) for one in part.objectSet]
        return [(str(one.kind), one.obj, {each.name: each.val for each in one.changeSet}) for one in objects]


@pytest.fixture
def follow(client: Client) -> Iterator[Callable[[Any], Follower]]:
    made: list[Follower] = []

    def make(spec: Any) -> Follower:
        made.append(Follower(client, spec))
        return made[-1]

    yield make
    for one in made:
        one.collector.DestroyPropertyCollector()


def test_first_all_then_only_what_changed(client: Client, follow: Callable[[Any], Follower]) -> None:
    view = client.view(vim.VirtualMachine)
    follower = follow(through_view(view, POWER))
    first = follower.changes()
    assert {kind for kind, _, _ in first} == {"enter"}
    assert len(first) == len(view.view)
    vm = client.vm("worker-1")
    client.ok(vm.PowerOn())
    seen: dict[str, Any] = {}

    def powered_on() -> bool:
        for _, obj, values in follower.changes():
            if obj == vm:
                seen.update(values)
        return "runtime.powerState" in seen

    until(powered_on)
    assert seen["runtime.powerState"] == "poweredOn"


def test_nothing_new_is_nothing(client: Client, follow: Callable[[Any], Follower]) -> None:
    follower = follow(through_view(client.view(vim.VirtualMachine), POWER))
    follower.next()
    assert follower.next(wait_s=0) is None
    assert follower.next(wait_s=1) is None


def test_updates_come_in_pieces_where_few_are_wanted(client: Client, follow: Callable[[Any], Follower]) -> None:
    view = client.view(vim.VirtualMachine)
    follower = follow(through_view(view, POWER))
    sizes, truncated = [], True
    while truncated:
        update = follower.next(most=2)
        sizes.append(sum(len(part.objectSet) for part in update.filterSet))
        truncated = bool(update.truncated)
    assert sum(sizes) == len(view.view)
    assert max(sizes) == 2


def test_tasks_come_along_with_their_vm(client: Client, follow: Callable[[Any], Follower]) -> None:
    view = client.view(vim.VirtualMachine)
    follower = follow(through_view(view, POWER, ["info.state", "info.entity", "info.descriptionId"]))
    follower.next()
    vm = client.vm("worker-1")
    task = vm.PowerOn()
    known: dict[str, Any] = {}
    states: list[str] = []

    def done() -> bool:
        for _, obj, values in follower.changes():
            if obj == task:
                known.update(values)
                states.append(str(known["info.state"]))
        return known.get("info.state") == "success"

    until(done)
    assert (known["info.entity"], known["info.descriptionId"]) == (vm, "VirtualMachine.powerOn")
    assert len(states) >= 2


def test_a_reconfiguration_is_told(client: Client, follow: Callable[[Any], Follower]) -> None:
    """Its devices and its memory's reservation, to who asked for those leaves alone."""
    vm = client.vm("worker-1")
    paths = ["config.hardware.device", "config.memoryReservationLockedToMax"]
    root = PC.ObjectSpec(obj=vm)
    properties = [PC.PropertySpec(type=vim.VirtualMachine, pathSet=paths)]
    follower = follow(PC.FilterSpec(objectSet=[root], propSet=properties))
    follower.next()
    client.ok(vm.Reconfigure(attach(QUARTER)))
    known: dict[str, Any] = {}

    def told() -> bool:
        for _, _, values in follower.changes():
            known.update(values)
        return paths[0] in known

    until(told)
    (backing,) = [one.backing for one in known[paths[0]] if isinstance(one, PCI)]
    assert isinstance(backing, PCI.VmiopBackingInfo)
    assert backing.vgpu == QUARTER
    assert known.get(paths[1], True) is True


def test_a_wait_ends_when_it_is_cancelled(client: Client, follow: Callable[[Any], Follower]) -> None:
    follower = follow(through_view(client.view(vim.VirtualMachine), POWER))
    follower.next()
    refused: list[type[Exception]] = []

    def wait() -> None:
        try:
            follower.next(wait_s=None)
        except Exception as error:
            refused.append(type(error))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()

    def cancelled() -> bool:
        follower.collector.CancelWaitForUpdates()
        waiting.join(0.05)
        return not waiting.is_alive()

    until(cancelled)
    assert refused == [vmodl.fault.RequestCanceled]


def test_a_filter_that_is_destroyed_tells_no_more(client: Client) -> None:
    collector = client.collector.CreatePropertyCollector()
    kept = collector.CreateFilter(through_view(client.view(vim.HostSystem), {vim.HostSystem: ["name"]}), False)
    gone = collector.CreateFilter(through_view(client.view(vim.VirtualMachine), POWER), False)
    gone.DestroyPropertyFilter()
    update = collector.WaitForUpdatesEx("", PC.WaitOptions(maxWaitSeconds=5))
    assert [part.filter for part in update.filterSet] == [kept]
    collector.DestroyPropertyCollector()


def test_a_made_up_version_is_refused(client: Client, vcenter: Vcenter, follow: Callable[[Any], Follower]) -> None:
    vcenter.holds_not("vcsim", "it takes any version but the empty one for the present")
    follower = follow(through_view(client.view(vim.VirtualMachine), POWER))
    follower.version = "77"
    with pytest.raises(vmodl.query.InvalidCollectorVersion):
        follower.next()


def test_an_empty_version_begins_anew(client: Client, vcenter: Vcenter, follow: Callable[[Any], Follower]) -> None:
    vcenter.holds_not("vcsim", "it tells each object of a filter once, whatever the version")
    view = client.view(vim.VirtualMachine)
    follower = follow(through_view(view, POWER))
    follower.next()
    follower.version = ""
    assert len(follower.changes()) == len(view.view)


def test_four_suspends_at_once_under_an_open_wait(client: Client, follow: Callable[[Any], Follower]) -> None:
    """With VMs themselves as roots of the filter, and their tasks behind them: vcsim once locked itself up so."""
    vms = [client.vm(f"worker-{number}") for number in range(1, 5)]
    client.ok(*(vm.PowerOn() for vm in vms))
    tasks = PC.TraversalSpec(name="tasks", type=vim.VirtualMachine, path="recentTask", skip=False)
    properties = [
        PC.PropertySpec(type=vim.VirtualMachine, pathSet=["runtime.powerState", "config.hardware.device"]),
        PC.PropertySpec(type=vim.Task, pathSet=["info.state"]),
    ]
    roots = [PC.ObjectSpec(obj=vm, selectSet=[tasks]) for vm in vms]
    follower = follow(PC.FilterSpec(objectSet=roots, propSet=properties))
    power: dict[Any, str] = {}

    def until_seen(wanted: str) -> None:
        until(lambda: all_are(wanted), what=f"all are {wanted}")

    def all_are(wanted: str) -> bool:
        for _, obj, values in follower.changes():
            power[obj] = str(values.get("runtime.powerState", power.get(obj)))
        return [power.get(vm) for vm in vms] == [wanted] * 4

    until_seen("poweredOn")
    for step, wanted in (("Suspend", "suspended"), ("PowerOn", "poweredOn")) * 6:
        started = [getattr(vm, step)() for vm in vms]
        until_seen(wanted)
        client.ok(*started)


def test_what_is_told_in_parts_comes_together_as_what_is_there(client: Client) -> None:
    """Ours tells only what changed inside of a device list, vcsim all of it."""
    paths = {vim.VirtualMachine: ["runtime.powerState", "config.hardware.device"]}
    collector = client.collector.CreatePropertyCollector()
    vm, version, known = client.vm("worker-1"), "", dict[str, Any]()
    collector.CreateFilter(through_view(client.view(vim.VirtualMachine), paths), partialUpdates=True)
    for change in (lambda: None, vm.PowerOn, vm.PowerOff, lambda: vm.ReconfigVM_Task(attach(QUARTER)), vm.PowerOn):
        if task := change():
            client.ok(task)
        while update := collector.WaitForUpdatesEx(version, PC.WaitOptions(maxWaitSeconds=0)):
            version = update.version
            news = (one for part in update.filterSet for one in part.objectSet if one.obj == vm)
            assert all(apply(known, each) for one in news for each in one.changeSet)
        assert str(known["runtime.powerState"]) == client.power(vm)
        assert [str(each) for each in known["config.hardware.device"]] == [
            str(each) for each in client.read(vm, "config.hardware.device")
        ]
    collector.DestroyPropertyCollector()

"""The simulated vCenter over its protocol: pyVmomi and govc as clients, unmodified."""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvicorn
from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import VmomiSupport, vim, vmodl
from pyVmomi.SoapAdapter import SoapStubAdapter

from vgpuctl.sim.calls import Calls
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, Inventory, story
from vgpuctl.sim.vcenter.app import vcenter_app
from vgpuctl.sim.vcenter.center import Center, Context
from vgpuctl.sim.vcenter.dispatch import HANDLERS
from vgpuctl.sim.vcenter.estate import Estate
from vgpuctl.sim.vcenter.metadata import NAMESPACE, NEWEST, typed
from vgpuctl.sim.vcenter.records import Changes
from vgpuctl.sim.vcenter.requests import FETCH
from vgpuctl.sim.vcenter.serialiser import serialise
from vgpuctl.sim.vcenter.sessions import Account, Sessions
from vgpuctl.sim.vcenter.things import read

USER, PASSWORD = "operator@vsphere.local", "open sesame & <more>"
READER, READERS_PASSWORD = "readonly@vsphere.local", "only looking"
QUARTER, WHOLE = "grid_v100-4q", "grid_v100-16q"
PC = vmodl.query.PropertyCollector
Certificates = tuple[Path, Path]


@dataclass
class QuietGuests:
    up: set[str] = field(default_factory=set)

    def boot(self, vm: str, gpus: int) -> None:
        self.up.add(vm)

    def freeze(self, vm: str) -> None: ...

    def thaw(self, vm: str) -> None: ...

    def halt(self, vm: str) -> None:
        self.up.discard(vm)

    def shut_down(self, vm: str, then: Callable[[], None]) -> None:
        then()

    def running(self, vm: str) -> bool:
        return vm in self.up


class Served:
    """One vCenter on a free port, in a thread whose loop also drives its clock: time jumps to whatever is due next."""

    def __init__(self, certificates: Certificates, inventory: Inventory | None = None) -> None:
        self.ca, certificate = certificates
        self.calls = Calls()
        self.clock = Clock(datetime(2026, 1, 5, tzinfo=UTC))
        self.guests = QuietGuests()
        self.estate = Estate(self.clock, inventory or story(cards=2), Durations.instant(), self.guests)
        accounts = [Account(USER, PASSWORD), Account(READER, READERS_PASSWORD, read_only=True)]
        self.center = Center(self.estate, Sessions(accounts, self.clock))
        self.app = vcenter_app(self.center, self.calls)
        self.frozen = False
        config = uvicorn.Config(
            self.app, port=0, ssl_certfile=certificate, log_level="error", lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._ready = threading.Event()

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self.center.sessions.end_all)
        self._server.should_exit = True
        self._thread.join()
        self._loop.close()

    @property
    def port(self) -> int:
        return int(self._server.servers[0].sockets[0].getsockname()[1])

    def do(self, action: Callable[[], Any]) -> Any:
        """Run `action` where the server runs: the world knows one thread."""

        async def run() -> Any:
            return action()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(20)

    def freeze_time(self, frozen: bool) -> None:
        def change() -> None:
            self.frozen = frozen
            self._timers_due()

        self.do(change)

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))

    def connect(self) -> Any:
        return SmartConnect(host="127.0.0.1", port=self.port, user=USER, pwd=PASSWORD, sslContext=self.trust())

    def stub(self) -> Any:
        return SoapStubAdapter(
            host="127.0.0.1", port=self.port, sslContext=self.trust(), version="vim.version.version9"
        )

    def post(self, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, str]:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.trust(), timeout=20)
        connection.request("POST", "/sdk", body, {"Content-Type": "text/xml", **(headers or {})})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def _look_at_timers_soon(self) -> None:
        self._loop.call_soon(self._timers_due)

    async def _serve(self) -> None:
        self.clock.on_new_timer = self._look_at_timers_soon
        serving = asyncio.ensure_future(self._server.serve())
        while not self._server.started:
            await asyncio.sleep(0.001)
        self._ready.set()
        await serving

    def _timers_due(self) -> None:
        """What is due within the minute happens at once; the forgetting of tasks does not."""
        if not self.frozen:
            self.clock.advance_to(self.clock.now_s)
            while (due := self.clock.next_due_s()) is not None and due < self.clock.now_s + 60:
                self.clock.advance_to(due)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return folder / "ca.pem", folder / "server.pem"


@pytest.fixture
def served(certificates: Certificates) -> Iterator[Served]:
    with Served(certificates) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[Any]:
    instance = served.connect()
    yield instance
    if served.center.sessions.all():
        Disconnect(instance)


def content_of(client: Any) -> Any:
    return client.RetrieveContent()


def view_filter(content: Any, paths: dict[Any, list[str]], with_tasks: list[str] | None = None) -> Any:
    """A filter over one view of those types, and over the VMs' tasks where their paths are given."""
    view = content.viewManager.CreateContainerView(content.rootFolder, list(paths), True)
    tasks = PC.TraversalSpec(type=vim.VirtualMachine, path="recentTask") if with_tasks else None
    walk = PC.TraversalSpec(type=vim.view.ContainerView, path="view", selectSet=[tasks] if tasks else [])
    properties = [PC.PropertySpec(type=kind, pathSet=wanted) for kind, wanted in paths.items()]
    if with_tasks:
        properties.append(PC.PropertySpec(type=vim.Task, pathSet=with_tasks))
    return PC.FilterSpec(propSet=properties, objectSet=[PC.ObjectSpec(obj=view, skip=True, selectSet=[walk])])


def vm_named(client: Any, name: str) -> Any:
    return content_of(client).searchIndex.FindByInventoryPath(f"dc/vm/{name}")


def wait_for(task: Any) -> Any:
    """Until a task is done, by the protocol's own way of waiting."""
    collector = PC(COLLECTOR_ID, task._stub).CreatePropertyCollector()
    one = PC.PropertySpec(type=vim.Task, pathSet=["info.state"])
    collector.CreateFilter(PC.FilterSpec(propSet=[one], objectSet=[PC.ObjectSpec(obj=task)]), False)
    version = ""
    for _ in range(20):
        updates = collector.WaitForUpdatesEx(version, PC.WaitOptions(maxWaitSeconds=10))
        assert updates, "the task did not move"
        version = updates.version
        if updates.filterSet[0].objectSet[0].changeSet[0].val in ("success", "error"):
            break
    collector.Destroy()
    return task.info


COLLECTOR_ID = "propertyCollector"


def add_vgpu(vm: Any, vgpu: str) -> Any:
    backing = vim.vm.device.VirtualPCIPassthrough.VmiopBackingInfo(vgpu=vgpu)
    device = vim.vm.device.VirtualPCIPassthrough(key=-1, backing=backing)
    change = vim.vm.device.VirtualDeviceSpec(operation="add", device=device)
    return wait_for(vm.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[change], memoryReservationLockedToMax=True)))


def values(update: Any) -> dict[str, Any]:
    return {change.name: change.val for change in update.changeSet}


# Logging in


def test_a_wrong_password_is_refused(served: Served) -> None:
    with pytest.raises(vim.fault.InvalidLogin):
        SmartConnect(host="127.0.0.1", port=served.port, user=USER, pwd="no", sslContext=served.trust())


def test_without_a_session_only_the_front_door_is_open(served: Served) -> None:
    instance = vim.ServiceInstance("ServiceInstance", served.stub())
    assert instance.RetrieveContent().about.apiType == "VirtualCenter"
    for refused in (instance.CurrentTime, lambda: vim.VirtualMachine("vm-1", instance._stub).PowerOn(None)):
        with pytest.raises(vim.fault.NotAuthenticated):
            refused()
    instance._stub.DropConnections()


def test_a_session_ends_with_its_logout_and_takes_its_views_along(served: Served, client: Any) -> None:
    content = content_of(client)
    assert content.sessionManager.currentSession.userName == USER
    view = content.viewManager.CreateContainerView(content.rootFolder, [], True)
    other = served.connect()
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vim.view.ContainerView(view._moId, other._stub).Destroy()
    Disconnect(other)
    content.sessionManager.Logout()
    with pytest.raises(vim.fault.NotAuthenticated):
        client.CurrentTime()
    client._stub.DropConnections()


def test_calls_are_counted_by_their_names_on_the_wire(served: Served, client: Any) -> None:
    served.calls.reset()
    assert vm_named(client, "worker-1").name == "worker-1"
    counts = served.calls.as_dict()["vcenter"]
    assert counts == {"Fetch": 1, "FindByInventoryPath": 1, "RetrieveServiceContent": 1}


# Reading


def test_one_call_reads_the_leaves_of_all_hosts_and_vms(client: Any) -> None:
    content = content_of(client)
    spec = view_filter(
        content,
        {
            vim.HostSystem: ["name", "config.graphicsInfo", "config.graphicsConfig", "hardware.memorySize"],
            vim.VirtualMachine: ["name", "runtime.powerState", "config.uuid", "runtime.host", "summary.guest"],
        },
    )
    found = content.propertyCollector.RetrievePropertiesEx([spec], PC.RetrieveOptions())
    by_name = {}
    for each in found.objects:
        properties = {one.name: one.val for one in each.propSet}
        by_name[properties["name"]] = properties
        assert not each.missingSet
    assert len(by_name) == 12
    assert by_name["infra-1"]["runtime.powerState"] == "poweredOn"
    assert isinstance(by_name["infra-1"]["runtime.powerState"], vim.VirtualMachine.PowerState)
    assert isinstance(by_name["worker-1"]["runtime.host"], vim.HostSystem)
    assert by_name["esx-1"]["config.graphicsConfig"].sharedPassthruAssignmentPolicy == "performance"
    assert isinstance(by_name["esx-1"]["hardware.memorySize"], VmomiSupport.long)
    assert [card.pciId for card in by_name["esx-1"]["config.graphicsInfo"]] == ["0000:3b:00.0", "0000:3c:00.0"]


@pytest.mark.parametrize("unasked", [True, False])
def test_pages_are_followed_by_their_token(served: Served, client: Any, unasked: bool) -> None:
    served.center.page_limit = 5 if unasked else None
    content = content_of(client)
    spec = view_filter(content, {vim.VirtualMachine: ["name"]})
    options = PC.RetrieveOptions(maxObjects=None if unasked else 5)
    page = content.propertyCollector.RetrievePropertiesEx([spec], options)
    sizes, names = [len(page.objects)], [one.propSet[0].val for one in page.objects]
    while page.token:
        page = content.propertyCollector.ContinueRetrievePropertiesEx(page.token)
        sizes.append(len(page.objects))
        names += [one.propSet[0].val for one in page.objects]
    assert sizes == [5, 5, 1]
    assert len(set(names)) == 11


def test_a_token_is_good_once_and_can_be_given_back(client: Any) -> None:
    collector = content_of(client).propertyCollector
    spec = view_filter(content_of(client), {vim.VirtualMachine: ["name"]})
    tokens = [collector.RetrievePropertiesEx([spec], PC.RetrieveOptions(maxObjects=5)).token for _ in range(2)]
    collector.ContinueRetrievePropertiesEx(tokens[0])
    collector.CancelRetrievePropertiesEx(tokens[1])
    for token in (*tokens, "made up"):
        for attempt in (collector.ContinueRetrievePropertiesEx, collector.CancelRetrievePropertiesEx):
            with pytest.raises(vmodl.fault.InvalidArgument):
                attempt(token)
    with pytest.raises(vmodl.fault.InvalidArgument):
        collector.RetrievePropertiesEx([spec], PC.RetrieveOptions(maxObjects=0))


@pytest.mark.parametrize("tolerant", [True, False])
def test_an_object_that_is_not_there_spoils_a_request_unless_it_may(client: Any, tolerant: bool) -> None:
    spec = PC.FilterSpec(
        propSet=[PC.PropertySpec(type=vim.VirtualMachine, pathSet=["name"])],
        objectSet=[PC.ObjectSpec(obj=vm) for vm in (vim.VirtualMachine("vm-999"), vm_named(client, "worker-1"))],
        reportMissingObjectsInResults=tolerant,
    )
    collector = content_of(client).propertyCollector
    if tolerant:
        assert [one.propSet[0].val for one in collector.RetrieveProperties([spec])] == ["worker-1"]
    else:
        with pytest.raises(vmodl.fault.ManagedObjectNotFound):
            collector.RetrieveProperties([spec])


def test_the_index_finds_by_path_uuid_and_name(client: Any) -> None:
    index = content_of(client).searchIndex
    vm, host = vm_named(client, "worker-1"), index.FindByInventoryPath("/dc/host/gpu/esx-1")
    dc = vm.parent.parent
    assert (vm.name, host.name) == ("worker-1", "esx-1")
    for path in ("dc/vm/nobody", "dc/nothing/worker-1", "elsewhere"):
        assert index.FindByInventoryPath(path) is None
    assert index.FindByUuid(dc, vm.config.uuid.upper(), True, False) == vm
    assert index.FindByUuid(None, vm.config.instanceUuid, True, True) == vm
    assert index.FindByUuid(None, host.hardware.systemInfo.uuid, False) == host
    assert index.FindByUuid(None, vm.config.uuid, False) is None
    assert index.FindAllByUuid(None, vm.config.uuid, True, False) == [vm]
    assert index.FindByDnsName(dc, "worker-1", True) == vm
    assert index.FindAllByDnsName(None, "esx-1", False) == [host]
    assert index.FindByDnsName(None, "esx-1", True) is None
    assert index.FindChild(vm.parent, "worker-1") == vm
    assert index.FindChild(vm.parent, "nobody") is None
    attempts: list[Callable[[], Any]] = [
        lambda: index.FindByUuid(vim.Datacenter("x"), "u", True),
        lambda: index.FindChild(vim.Folder("x"), "y"),
    ]
    for unknown in attempts:
        with pytest.raises(vmodl.fault.ManagedObjectNotFound):
            unknown()


def test_a_path_that_no_type_has_is_an_invalid_property(client: Any) -> None:
    content = content_of(client)
    for kind, path in ((vim.VirtualMachine, "runtime.bogus"), (vim.HostSystem, "bogus")):
        with pytest.raises(vmodl.query.InvalidProperty) as refused:
            content.propertyCollector.RetrieveProperties([view_filter(content, {kind: [path]})])
        assert refused.value.name == path


def test_an_unset_property_is_simply_absent(client: Any) -> None:
    content = content_of(client)
    spec = view_filter(content, {vim.VirtualMachine: ["name", "runtime.bootTime", "snapshot"]})
    found = content.propertyCollector.RetrieveProperties([spec])
    booted = {one.propSet[0].val: {each.name for each in one.propSet} for one in found}
    assert booted["infra-1"] == {"name", "runtime.bootTime"}
    assert booted["worker-1"] == {"name"}


def test_devices_can_be_read_whole_and_by_key(client: Any) -> None:
    vm = vm_named(client, "worker-1")
    add_vgpu(vm, QUARTER)
    device = vm.config.hardware.device[-1]
    assert device.backing.vgpu == QUARTER
    path = f"config.hardware.device[{device.key}].backing.vgpu"
    content = content_of(client)
    spec = PC.FilterSpec(
        propSet=[PC.PropertySpec(type=vim.VirtualMachine, pathSet=[path])], objectSet=[PC.ObjectSpec(obj=vm)]
    )
    assert content.propertyCollector.RetrieveProperties([spec])[0].propSet[0].val == QUARTER


def test_every_leaf_says_what_its_whole_says(served: Served) -> None:
    """A leaf with a reader of its own is a short cut: nothing else holds it to its whole structure."""
    center = served.center

    def compare() -> int:
        compared = 0
        for thing in center._things.values():
            context = Context(center, None)
            for path in thing.table.readers:
                whole = read(thing, path.partition(".")[0], context)
                for step in path.split(".")[1:]:
                    whole = getattr(whole, step) if whole is not None else None
                if "." in path and thing.table.nearest(path.partition(".")[0]):
                    leaf = read(thing, path, context)
                    assert xml(leaf) == xml(typed(whole, type(leaf))), f"{thing.ref} {path}"
                    compared += 1
        return compared

    served.do(lambda: served.estate.reconfigure(served.estate.vms["worker-1"], Changes(added=((0, QUARTER),))))
    assert served.do(compare) > 100


def test_short_cuts_write_what_the_value_itself_says(served: Served) -> None:
    """Leaves by their openings, device lists by their shapes: each VM's must be its own, in each of its states."""
    center = served.center
    names = {vm.name: vm for vm in served.estate.vms.values()}

    def differing() -> list[str]:
        found = []
        for thing in center._things.values():
            for path in (*thing.table.readers, *thing.table.writers):
                short = center.xml(thing, (path, NEWEST), None)
                if (short or "") != xml(read(thing, path, Context(center, None))):
                    found.append(f"{thing.ref} {path}")
        return found

    for number, vgpu in ((1, QUARTER), (2, QUARTER), (3, WHOLE)):
        change = Changes(added=((0, vgpu),), memory_locked=True)
        served.do(partial(served.estate.reconfigure, names[f"worker-{number}"], change))
    for power in (served.estate.power_on, served.estate.suspend):
        served.do(partial(power, names["worker-2"]))
        assert served.do(differing) == []
        assert served.do(differing) == []


def xml(value: Any) -> str:
    return "" if value is None else serialise("val", value, object, NEWEST)


def test_every_property_of_every_thing_can_be_sent(served: Served, client: Any) -> None:
    content = content_of(client)
    kinds = [
        vim.VirtualMachine,
        vim.HostSystem,
        vim.Folder,
        vim.Datacenter,
        vim.ClusterComputeResource,
        vim.ResourcePool,
        vim.Datastore,
        vim.Network,
    ]
    view = content.viewManager.CreateContainerView(content.rootFolder, kinds, True)
    assert {type(one) for one in view.view} == set(kinds)
    walk = PC.TraversalSpec(type=vim.view.ContainerView, path="view")
    spec = PC.FilterSpec(
        propSet=[PC.PropertySpec(type=vim.ManagedEntity, all=True)],
        objectSet=[PC.ObjectSpec(obj=view, skip=True, selectSet=[walk])],
    )
    found = content.propertyCollector.RetrieveProperties([spec])
    assert len(found) == len(view.view)
    assert all({"name", "parent"} <= {each.name for each in one.propSet} for one in found)


def test_every_handler_takes_what_its_metadata_say(served: Served) -> None:
    for method, handler in HANDLERS.items():
        info = FETCH if method == "Fetch" else VmomiSupport.GetWsdlMethod(NAMESPACE, method).info
        code = handler.__code__
        assert code.co_argcount == len(info.params) + 1, method

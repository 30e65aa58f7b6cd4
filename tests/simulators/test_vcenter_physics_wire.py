"""The physics as a client sees them: modes, capabilities, questions, maintenance, cancelling, free space."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from pyVmomi import VmomiSupport, vim, vmodl

from tests.support.physics import GIB
from tests.support.vcenter import LOGINS, content_of, vm_named, wait_for
from vgpuctl.sim.card_models import MODELS, CardMode
from vgpuctl.sim.inventory import ESXI_BUILD, VGPU_MANAGER, CardSpec, HostSpec, Inventory, VmSpec, pci_id
from vgpuctl.sim.vcenter.physics import refusals
from vgpuctl.sim.vcenter.physics.records import Power
from vgpuctl.sim.vcenter.physics.refusals import Refusal
from vgpuctl.sim.vcenter.wire.faults import fault_of
from vgpuctl.sim.vcenter.wire.metadata import NEWEST
from vgpuctl.sim.vcenter.wire.serialiser import serialise
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate

TYPE = "nvidia_a100-8c"


@pytest.fixture(scope="module")
def standing_estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """A card in each mode, and a VM for each thing that can go wrong."""
    cards = tuple(CardSpec(pci_id(n), MODELS["A100-40"], mode) for n, mode in enumerate(CardMode))
    host = HostSpec("esx-1", cards, "consolidation", memory_mib=128 * GIB, unsuspendable=("nvidia_a100-40c",))
    vms = (
        VmSpec("worker-1", "esx-1", vgpus=(TYPE,), memory_locked=True, managed_by="com.example.operator"),
        VmSpec("rdma-1", "esx-1", sriov=True, powered_on=True),
        VmSpec("moved-1", "esx-1", question="Was it moved or copied?"),
        VmSpec("huge-1", "esx-1", memory_mib=100 * GIB, memory_locked=True, powered_on=True),
    )
    inventory = Inventory("gpu", (host,), vms, datastore_free_mib=20 * GIB)
    with Estate(tmp_path_factory.mktemp("physics") / "estate", inventory, logins=LOGINS) as estate:
        yield estate


def host_of(client: Any) -> Any:
    return content_of(client).searchIndex.FindByInventoryPath("dc/host/gpu/esx-1")


def test_each_card_tells_its_mode(client: Any) -> None:
    config = host_of(client).config
    assert [info.vgpuMode for info in config.graphicsInfo] == ["sameSize", "mixedSize", "multiInstanceGpu"]
    assert [each.vgpuMode for each in config.graphicsConfig.deviceType] == ["sameSize", "mixedSize", None]
    assert config.graphicsConfig.sharedPassthruAssignmentPolicy == "consolidation"
    assert config.sharedPassthruGpuTypes[-1] == "nvidia_a100-1-5c"
    cannot = [each.vgpu for each in config.sharedGpuCapabilities if not each.suspendSupported]
    assert cannot == ["nvidia_a100-40c"]


def test_the_graphics_manager_and_the_environment_tell_types_and_cards(client: Any) -> None:
    host, vm = host_of(client), vm_named(client, "worker-1")
    manager = host.configManager.graphicsManager
    profiles = {each.profileName: each for each in manager.RetrieveVgpuProfileInfo()}
    slice_ = profiles["nvidia_a100-3-20c"]
    assert (slice_.fbSizeInGib, slice_.profileSharing, slice_.profileClass) == (20, "mig", "compute")
    assert slice_.deviceVendorId == 0x20F110DE
    (device,) = manager.RetrieveVgpuDeviceInfo()
    assert (device.maxFbSizeInGib, device.migCapable, device.quadroProfileCapable) == (40, True, False)
    target = vm.environmentBrowser.QueryConfigTarget(host=host)
    assert [each.vgpu for each in target.sharedGpuPassthroughTypes] == list(host.config.sharedPassthruGpuTypes)
    assert [each.profileName for each in target.vgpuProfileInfo] == list(profiles)
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        vm.environmentBrowser.QueryConfigTarget(host=vim.HostSystem("host-9", client._stub))


def test_a_host_shows_its_build_and_its_vgpu_manager(client: Any) -> None:
    host = host_of(client)
    assert (host.config.product.build, host.summary.config.product.build) == (ESXI_BUILD, ESXI_BUILD)
    (package,) = host.configManager.imageConfigManager.FetchSoftwarePackages()
    assert (package.vendor, package.version.partition("-")[0]) == ("NVIDIA", VGPU_MANAGER)


def test_who_owns_a_vm_and_what_devices_it_has(client: Any) -> None:
    worker, rdma = vm_named(client, "worker-1"), vm_named(client, "rdma-1")
    assert (worker.config.managedBy.extensionKey, rdma.config.managedBy) == ("com.example.operator", None)
    cards = [each for each in rdma.config.hardware.device if isinstance(each, vim.vm.device.VirtualSriovEthernetCard)]
    assert [card.deviceInfo.label for card in cards if card.deviceInfo] == ["Network adapter 2"]
    refused = wait_for(rdma.Suspend()).error
    assert isinstance(refused, vim.fault.GenericVmConfigFault)
    assert "Network adapter 2" in refused.reason


def test_short_memory_and_short_space_arrive_as_vspheres_faults(client: Any) -> None:
    worker, huge = vm_named(client, "worker-1"), vm_named(client, "huge-1")
    no_space = wait_for(huge.Suspend()).error
    assert isinstance(no_space, vim.fault.NoDiskSpace)
    assert no_space.datastore == "store"
    assert wait_for(worker.ReconfigVM_Task(vim.vm.ConfigSpec(memoryMB=40 * GIB))).state == "success"
    no_memory = wait_for(worker.PowerOn()).error
    assert isinstance(no_memory, vim.fault.InsufficientMemoryResourcesFault)
    assert (no_memory.unreserved, no_memory.requested) == ((28 * GIB - 974) << 20, (40 * GIB + 351) << 20)
    assert worker.runtime.memoryOverhead == 351 << 20


def test_the_datastores_free_space_follows_suspends_and_resumes(client: Any) -> None:
    store, worker = host_of(client).datastore[0], vm_named(client, "worker-1")
    assert wait_for(worker.PowerOn()).state == "success"
    before = store.summary.freeSpace
    assert wait_for(worker.Suspend()).state == "success"
    assert before - store.summary.freeSpace == 16 << 30
    assert wait_for(worker.PowerOn()).state == "success"
    assert store.summary.freeSpace == before == 20 << 30


def test_a_question_is_seen_answered_and_gone(client: Any) -> None:
    vm = vm_named(client, "moved-1")
    task = vm.PowerOn()
    question = vm.runtime.question
    assert question.text == "Was it moved or copied?"
    assert [choice.label for choice in question.choice.choiceInfo] == ["Cancel", "I Moved It", "I Copied It"]
    assert (task.info.state, vm.runtime.powerState) == ("running", "poweredOff")
    with pytest.raises(vmodl.fault.InvalidArgument):
        vm.AnswerVM("another", "1")
    vm.AnswerVM(question.id, "1")
    assert wait_for(task).state == "success"
    assert (vm.runtime.question, vm.runtime.powerState) == (None, "poweredOn")


def test_a_task_is_cancelled_while_it_can_be(client: Any) -> None:
    vm = vm_named(client, "moved-1")
    task = vm.PowerOn()
    assert task.info.cancelable
    task.CancelTask()
    info = task.info
    assert (info.state, info.cancelled, type(info.error)) == ("error", True, vmodl.fault.RequestCanceled)
    with pytest.raises(vim.fault.InvalidState):
        task.CancelTask()


def test_a_host_in_maintenance_refuses_and_says_so(client: Any) -> None:
    host, worker = host_of(client), vm_named(client, "worker-1")
    for name in ("rdma-1", "huge-1"):
        assert wait_for(vm_named(client, name).PowerOff()).state == "success"
    without_drs = wait_for(host.EnterMaintenanceMode(timeout=1, evacuatePoweredOffVms=True))
    assert isinstance(without_drs.error, vim.fault.Timedout), "VMs that are off stay registered here"
    entering = wait_for(host.EnterMaintenanceMode(timeout=0))
    assert (entering.state, entering.entity, host.runtime.inMaintenanceMode) == ("success", host, True)
    assert isinstance(wait_for(worker.PowerOn()).error, vim.fault.InvalidState)
    assert wait_for(host.ExitMaintenanceMode(timeout=0)).state == "success"
    assert wait_for(worker.PowerOn()).state == "success"


def every_refusal() -> list[Refusal]:
    spec = HostSpec("esx-1")
    inventory = Inventory("gpu", (spec,), (VmSpec("a", "esx-1"),))
    world = World(inventory)
    host, vm, store = world.estate.hosts["esx-1"], world.estate.vms["a"], world.estate.places.stores[0]
    task = world.estate.power_on(vm)
    known = {"vm": vm, "host": host, "store": store, "task": task, "wanted": Power.ON, "device": "a", "name": "a"}
    known |= {"index": 0, "most": 16, "refused": [(host, refusals.no_graphics())]}
    makers = [made for name, made in vars(refusals).items() if inspect.isfunction(made) and not name.startswith("_")]
    return [maker(*(known[name] for name in inspect.signature(maker).parameters)) for maker in makers]


@pytest.mark.parametrize("refusal", every_refusal(), ids=lambda refusal: refusal.kind)
def test_each_refusal_is_a_fault_of_vspheres_with_its_fields(refusal: Refusal) -> None:
    fault = fault_of(refusal)
    assert isinstance(fault, vmodl.MethodFault)
    required = {info.name for info in fault._GetPropertyList() if not info.flags & VmomiSupport.F_OPTIONAL}
    assert {name for name in required if getattr(fault, name) is None} == set()
    xml = serialise("fault", fault, vmodl.MethodFault, NEWEST)
    assert refusal.message.partition("'")[0] in xml

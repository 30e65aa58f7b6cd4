"""A VM's properties."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.device_xml import device_xml
from vgpuctl.sim.vcenter.inventory.devices import device_list
from vgpuctl.sim.vcenter.inventory.objects import PropertyTable
from vgpuctl.sim.vcenter.physics.records import CHOICES, Power, Vm
from vgpuctl.sim.vcenter.wire.vmomi import vim

VM = PropertyTable()
GUEST_ID = "ubuntu64Guest"
GUEST_NAME = "Ubuntu Linux (64-bit)"


@VM("name", "config.name", "summary.config.name")
def _name(_: Any, vm: Vm) -> str:
    return vm.name


@VM("guest.hostName")
def _host_name(_: Any, vm: Vm) -> str:
    return vm.guest


@VM("parent")
def _parent(_: Any, vm: Vm) -> Any:
    return refs.of(vm.folder)


@VM("overallStatus", "configStatus", "guestHeartbeatStatus")
def _status(_: Any, vm: Vm) -> str:
    return "green"


@VM("recentTask")
def _recent_task(_: Any, vm: Vm) -> list[Any]:
    return refs.of_all(vm.recent_tasks)


@VM("resourcePool")
def _pool(_: Any, vm: Vm) -> Any:
    return refs.pool(vm.host.cluster)


@VM("datastore")
def _datastore(_: Any, vm: Vm) -> list[Any]:
    return refs.of_all(vm.stores)


@VM("network")
def _network(_: Any, vm: Vm) -> list[Any]:
    return [refs.network(vm.host.cluster.datacenter)]


@VM("runtime.powerState", "summary.runtime.powerState")
def _power(_: Any, vm: Vm) -> str:
    return vm.shown_power.value


@VM("runtime.host", "summary.runtime.host")
def _host(_: Any, vm: Vm) -> Any:
    return refs.of(vm.host)


@VM("runtime.question", "summary.runtime.question")
def question(_: Any, vm: Vm) -> Any:
    if not vm.question:
        return None
    choices = [vim.ElementDescription(key=str(n), label=text, summary=text) for n, text in enumerate(CHOICES)]
    # vSphere API: AnswerVM takes the key of one of these choices.
    return vim.vm.QuestionInfo(
        id=vm.question.id,
        text=vm.question.text,
        choice=vim.option.ChoiceOption(valueIsReadonly=False, choiceInfo=choices, defaultIndex=0),
    )


@VM("runtime", "summary.runtime")
def runtime(context: Any, vm: Vm) -> Any:
    return vim.vm.RuntimeInfo(
        host=refs.of(vm.host),
        # vSphere API: a VM is `disconnected` while its host is not connected, whatever the reason. That its power
        # state stays as vCenter knew it last is inferred.
        connectionState="connected" if vm.host.connected else "disconnected",
        powerState=vm.shown_power.value,
        question=question(context, vm),
        faultToleranceState="notConfigured",
        recordReplayState="inactive",
        # vSphere API: set by a start from off, cleared by a power-off, and left by a resume.
        bootTime=vm.booted,
        suspendInterval=0,
        # vSphere API: in bytes; for a VM that is off, what a power-on would need.
        memoryOverhead=vm.overhead_mib << 20,
        maxCpuUsage=vm.cpus * 2400,
        maxMemoryUsage=vm.memory_mib,
    )


@VM("config.uuid", "summary.config.uuid")
def _uuid(_: Any, vm: Vm) -> str:
    return vm.spec.uuid


@VM("config.instanceUuid", "summary.config.instanceUuid")
def instance_uuid(_: Any, vm: Vm) -> str:
    # vSphere API: the BIOS uuid may be there twice, for example in copies; the instance uuid is unique.
    return f"50{vm.spec.uuid[2:]}"


@VM("config.memoryReservationLockedToMax")
def _memory_locked(_: Any, vm: Vm) -> bool:
    return vm.memory_locked


@VM("config.changeVersion")
def change_version(_: Any, vm: Vm) -> str:
    return str(vm.revision)


@VM("config.hardware.memoryMB", "summary.config.memorySizeMB")
def _memory(_: Any, vm: Vm) -> int:
    return vm.memory_mib


@VM("config.hardware.numCPU", "summary.config.numCpu")
def _cpus(_: Any, vm: Vm) -> int:
    return vm.cpus


@VM("config.hardware.device")
def _devices(_: Any, vm: Vm) -> list[Any]:
    return device_list(vm)


VM.written("config.hardware.device")(device_xml)


# vSphere: an extension such as VM Operator owns the VM's devices and power.
@VM("config.managedBy", "summary.config.managedBy")
def managed_by(_: Any, vm: Vm) -> Any:
    return (
        vim.ext.ManagedByInfo(extensionKey=vm.spec.managed_by, type="virtual-machine") if vm.spec.managed_by else None
    )


@VM("environmentBrowser")
def _environment_browser(_: Any, vm: Vm) -> Any:
    return refs.environment_browser(vm.host.cluster)


@VM("config.files.vmPathName", "summary.config.vmPathName")
def _path(_: Any, vm: Vm) -> str:
    return f"[{vm.store.name}] {vm.guest}/{vm.name}.vmx"


@VM("config.files.suspendDirectory")
def _suspend_directory(_: Any, vm: Vm) -> str:
    # vSphere API: where the suspend file is written. Unless it was set, that is beside the .vmx.
    return f"[{vm.suspend_store.name}] {vm.guest}/"


@VM("config.firmware")
def _firmware(_: Any, vm: Vm) -> str:
    return "bios" if vm.spec.bios else "efi"


@VM("config.extraConfig")
def _extra_config(_: Any, vm: Vm) -> list[Any]:
    return [vim.option.OptionValue(key=key, value=value) for key, value in sorted(vm.extra_config.items())]


@VM("config")
def _config(context: Any, vm: Vm) -> Any:
    return vim.vm.ConfigInfo(
        changeVersion=change_version(context, vm),
        modified=vm.changed,
        name=vm.name,
        guestFullName=GUEST_NAME,
        version="vmx-21",
        uuid=vm.spec.uuid,
        instanceUuid=instance_uuid(context, vm),
        template=False,
        guestId=GUEST_ID,
        alternateGuestName="",
        annotation=vm.annotation,
        firmware=_firmware(context, vm),
        files=vim.vm.FileInfo(vmPathName=_path(context, vm), suspendDirectory=_suspend_directory(context, vm)),
        flags=vim.vm.FlagInfo(),
        defaultPowerOps=vim.vm.DefaultPowerOpInfo(powerOffType="soft", suspendType="hard", resetType="soft"),
        tools=vim.vm.ToolsConfigInfo(toolsVersion=12389, syncTimeWithHost=False),
        hardware=vim.vm.VirtualHardware(
            numCPU=vm.cpus, numCoresPerSocket=1, memoryMB=vm.memory_mib, device=device_list(vm)
        ),
        cpuAllocation=_allocation(0),
        memoryAllocation=_allocation(vm.reservation_mib),
        memoryReservationLockedToMax=vm.memory_locked,
        extraConfig=_extra_config(context, vm),
        managedBy=managed_by(context, vm),
    )


@VM("resourceConfig")
def _resource_config(_: Any, vm: Vm) -> Any:
    return vim.ResourceConfigSpec(
        entity=refs.of(vm), cpuAllocation=_allocation(0), memoryAllocation=_allocation(vm.reservation_mib)
    )


@VM("guest.guestState")
def guest_state(context: Any, vm: Vm) -> str:
    # VMware Tools in the guest report this state; without them it is unknown.
    if not tools_run(context, vm):
        return "notRunning"
    return "shuttingDown" if vm.shutting_down else "running"


@VM("guest.toolsRunningStatus", "summary.guest.toolsRunningStatus")
def _tools_running(context: Any, vm: Vm) -> str:
    return "guestToolsRunning" if tools_run(context, vm) else "guestToolsNotRunning"


@VM("guest.toolsStatus", "summary.guest.toolsStatus")
def _tools_status(context: Any, vm: Vm) -> str:
    return "toolsOk" if tools_run(context, vm) else "toolsNotRunning"


@VM("guest")
def _guest(context: Any, vm: Vm) -> Any:
    return vim.vm.GuestInfo(
        toolsStatus=_tools_status(context, vm),
        toolsRunningStatus=_tools_running(context, vm),
        toolsVersionStatus2="guestToolsCurrent",
        guestId=GUEST_ID,
        guestFamily="linuxGuest",
        guestFullName=GUEST_NAME,
        hostName=vm.guest,
        guestState=guest_state(context, vm),
    )


@VM("summary")
def _summary(context: Any, vm: Vm) -> Any:
    devices = device_list(vm)
    return vim.vm.Summary(
        vm=refs.of(vm),
        runtime=runtime(context, vm),
        guest=vim.vm.Summary.GuestSummary(
            guestId=GUEST_ID,
            guestFullName=GUEST_NAME,
            toolsStatus=_tools_status(context, vm),
            toolsRunningStatus=_tools_running(context, vm),
            hostName=vm.guest,
        ),
        config=vim.vm.Summary.ConfigSummary(
            name=vm.name,
            template=False,
            vmPathName=_path(context, vm),
            memorySizeMB=vm.memory_mib,
            memoryReservation=vm.reservation_mib,
            numCpu=vm.cpus,
            numEthernetCards=sum(isinstance(device, vim.vm.device.VirtualEthernetCard) for device in devices),
            numVirtualDisks=sum(isinstance(device, vim.vm.device.VirtualDisk) for device in devices),
            uuid=vm.spec.uuid,
            instanceUuid=instance_uuid(context, vm),
            guestId=GUEST_ID,
            guestFullName=GUEST_NAME,
            annotation=vm.annotation,
            managedBy=managed_by(context, vm),
        ),
        quickStats=vim.vm.Summary.QuickStats(guestHeartbeatStatus="green", overallCpuUsage=0, guestMemoryUsage=0),
        overallStatus="green",
    )


def tools_run(context: Any, vm: Vm) -> bool:
    # VMware Tools run in a guest that is up, and so neither while it boots nor while it is frozen.
    return vm.tools and vm.host.connected and vm.power is Power.ON and bool(context.estate.guests.running(vm.guest))


def _allocation(reserved: int) -> Any:
    return vim.ResourceAllocationInfo(
        reservation=reserved, expandableReservation=False, limit=-1, shares=vim.SharesInfo(shares=1000, level="normal")
    )

"""A host's properties, with those of its cards."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.card_models import CardMode
from vgpuctl.sim.inventory import uuid_of
from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.objects import PropertyTable
from vgpuctl.sim.vcenter.physics.cards import Card
from vgpuctl.sim.vcenter.physics.records import Host
from vgpuctl.sim.vcenter.wire import service
from vgpuctl.sim.vcenter.wire.vmomi import vim

HOST = PropertyTable()
GRAPHICS_MANAGER = PropertyTable()
IMAGE_MANAGER = PropertyTable()
CORES, _MHZ = 64, 2400
#: vSphere API: `HostGraphicsInfoVgpuMode`. MIG is among these values, and not among those of a setting.
_MODE = {
    CardMode.SAME_SIZE: "sameSize",
    CardMode.MIXED_SIZE: "mixedSize",
    CardMode.MIG: "multiInstanceGpu",
}
NVIDIA = 0x10DE
"""NVIDIA's PCI vendor id."""
#: PCI: class 03 is a display controller, its subclass 02 one for 3D.
_DISPLAY_CONTROLLER = 0x0302


@HOST("name", "summary.config.name")
def _name(_: Any, host: Host) -> str:
    return host.name


@HOST("parent")
def _parent(_: Any, host: Host) -> Any:
    return refs.of(host.cluster)


@HOST("overallStatus", "configStatus", "summary.overallStatus")
def _status(_: Any, host: Host) -> str:
    # vSphere: its own alarm "Host connection and power state" turns a lost host red.
    return "green" if host.connected else "red"


@HOST("vm")
def _vms(_: Any, host: Host) -> list[Any]:
    return refs.of_all(host.vms)


@HOST("datastore")
def _datastore(_: Any, host: Host) -> list[Any]:
    return refs.stores(host.cluster.datacenter)


@HOST("network")
def _network(_: Any, host: Host) -> list[Any]:
    return [refs.network(host.cluster.datacenter)]


@HOST("recentTask")
def _recent_task(_: Any, host: Host) -> list[Any]:
    return refs.of_all(host.recent_tasks)


@HOST("runtime.inMaintenanceMode", "summary.runtime.inMaintenanceMode")
def _in_maintenance(_: Any, host: Host) -> bool:
    return host.in_maintenance


@HOST("runtime", "summary.runtime")
def _runtime(context: Any, host: Host) -> Any:
    return vim.host.RuntimeInfo(
        connectionState=host.connection.value,
        # vSphere API: vCenter cannot know the power state of a host that it has lost.
        powerState="poweredOn" if host.connected else "unknown",
        inMaintenanceMode=host.in_maintenance,
        bootTime=context.estate.clock.began,
    )


@GRAPHICS_MANAGER("graphicsInfo")
@HOST("config.graphicsInfo")
def graphics_info(context: Any, host: Host) -> list[Any]:
    # vSphere: `graphicsInfo.vm` says which VMs are on a card, as far as the host's books know.
    return [_graphics(card) for card in host.cards]


@GRAPHICS_MANAGER("graphicsConfig")
@HOST("config.graphicsConfig")
def _graphics_config(_: Any, host: Host) -> Any:
    kind = vim.host.GraphicsConfig.DeviceType
    return vim.host.GraphicsConfig(
        hostDefaultGraphicsType="sharedDirect",
        sharedPassthruAssignmentPolicy=host.policy,
        deviceType=[
            # vSphere 8.0 U3: `vgpuMode` is a setting of each card.
            kind(deviceId=card.spec.pci_id, graphicsType=_graphics_type(card), vgpuMode=_configured_mode(card))
            for card in host.cards
        ],
    )


@GRAPHICS_MANAGER("sharedPassthruGpuTypes")
@HOST("config.sharedPassthruGpuTypes")
def _gpu_types(_: Any, host: Host) -> list[str]:
    return vgpu_types(host)


@GRAPHICS_MANAGER("sharedGpuCapabilities")
@HOST("config.sharedGpuCapabilities")
def _capabilities(_: Any, host: Host) -> list[Any]:
    return [
        vim.host.SharedGpuCapabilities(
            vgpu=vgpu,
            suspendSupported=vgpu not in host.spec.unsuspendable,
            migrateSupported=True,
            diskSnapshotSupported=True,
            memorySnapshotSupported=True,
        )
        for vgpu in vgpu_types(host)
    ]


@HOST("config")
def _config(context: Any, host: Host) -> Any:
    return vim.host.ConfigInfo(
        host=refs.of(host),
        product=_product(host),
        graphicsInfo=graphics_info(context, host),
        graphicsConfig=_graphics_config(context, host),
        sharedPassthruGpuTypes=vgpu_types(host),
        sharedGpuCapabilities=_capabilities(context, host),
    )


@HOST("config.product", "summary.config.product")
def _about(_: Any, host: Host) -> Any:
    return _product(host)


@HOST("configManager")
def _config_manager(_: Any, host: Host) -> Any:
    return vim.host.ConfigManager(
        graphicsManager=refs.graphics_manager(host), imageConfigManager=refs.image_manager(host)
    )


@HOST("hardware")
def _hardware(_: Any, host: Host) -> Any:
    return vim.host.HardwareInfo(
        systemInfo=vim.host.SystemInfo(vendor="Simulated", model="Two sockets", uuid=uuid_of(host.name)),
        cpuInfo=vim.host.CpuInfo(numCpuPackages=2, numCpuCores=CORES, numCpuThreads=2 * CORES, hz=_MHZ * 1_000_000),
        memorySize=host.spec.memory_mib << 20,
        # Measured: `govc gpu.host.info` reads this list, and not `config.graphicsInfo`.
        pciDevice=[_pci_device(card) for card in host.cards],
    )


@HOST("summary")
def _summary(context: Any, host: Host) -> Any:
    return vim.host.Summary(
        host=refs.of(host),
        hardware=vim.host.Summary.HardwareSummary(
            vendor="Simulated",
            model="Two sockets",
            uuid=uuid_of(host.name),
            memorySize=host.spec.memory_mib << 20,
            cpuModel="Simulated CPU",
            cpuMhz=_MHZ,
            numCpuPkgs=2,
            numCpuCores=CORES,
            numCpuThreads=2 * CORES,
            numNics=2,
            numHBAs=1,
        ),
        runtime=_runtime(context, host),
        config=vim.host.Summary.ConfigSummary(name=host.name, port=443, product=_product(host), vmotionEnabled=True),
        quickStats=vim.host.Summary.QuickStats(overallCpuUsage=0, overallMemoryUsage=0),
        overallStatus=_status(context, host),
        rebootRequired=False,
    )


def vgpu_types(host: Host) -> list[str]:
    return list(dict.fromkeys(vgpu for card in host.cards for vgpu in card.spec.offers))


def _graphics(card: Card) -> Any:
    return vim.host.GraphicsInfo(
        deviceName=card.spec.device_name,
        vendorName="NVIDIA Corporation",
        pciId=card.spec.pci_id,
        graphicsType=_graphics_type(card),
        vgpuMode=_MODE[card.spec.mode],
        memorySizeInKB=card.spec.frame_mib * 1024,
        vm=[vim.VirtualMachine(moid) for moid in card.booked],
    )


def _graphics_type(card: Card) -> str:
    # vSphere: only a card of type `sharedDirect` holds vGPUs.
    return "shared" if card.spec.shared else "sharedDirect"


def _configured_mode(card: Card) -> str | None:
    """vSphere's setting has no value for MIG, which is a mode of the card itself."""
    return None if card.spec.mode is CardMode.MIG else _MODE[card.spec.mode]


def _pci_device(card: Card) -> Any:
    """govc takes a PCI device for a physical GPU if it is NVIDIA's and has a subdevice."""
    _, bus, slot_function = card.spec.pci_id.split(":")
    slot, _, function = slot_function.partition(".")
    return vim.host.PciDevice(
        id=card.spec.pci_id,
        classId=_DISPLAY_CONTROLLER,
        bus=_signed_byte(int(bus, 16)),
        slot=int(slot, 16),
        function=int(function, 16),
        vendorId=NVIDIA,
        subVendorId=NVIDIA,
        vendorName="NVIDIA Corporation",
        deviceId=card.spec.model.device_id,
        subDeviceId=0x1214,
        deviceName=card.spec.device_name,
    )


def _signed_byte(number: int) -> int:
    """An xsd:byte is signed, a PCI bus number is not."""
    return number - 256 if number > 127 else number


def _product(host: Host) -> Any:
    product = service.about()
    product.build = host.software.build
    product.name, product.productLineId, product.apiType = "VMware ESXi", "embeddedEsx", "HostAgent"
    product.fullName = f"VMware ESXi {product.version} build-{product.build} (simulated)"
    product.osType, product.instanceUuid = "vmnix-x86", None
    return product

"""A host's GraphicsManager: vGPU types and cards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vgpuctl.sim.card_models import CardMode, CardModel
from vgpuctl.sim.vcenter.inventory.host_properties import NVIDIA
from vgpuctl.sim.vcenter.physics import graphics_books
from vgpuctl.sim.vcenter.physics.records import Host
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.vmomi import vim

#: vSphere API: `VgpuProfileInfo.profileClass`, from the letter at the end of NVIDIA's type names.
_CLASSES = {"q": "quadro", "c": "compute"}
_SHARING = {
    CardMode.SAME_SIZE: "timeSliced",
    CardMode.MIXED_SIZE: "timeSliced",
    CardMode.MIG: "mig",
}


# vSphere API 7.0.3: both methods. vcsim 0.56 does not know them (measured).
@handles("RetrieveVgpuProfileInfo")
def retrieve_vgpu_profile_info(call: Call) -> list[Any]:
    return profiles([call.subject])


@handles("RetrieveVgpuDeviceInfo")
def retrieve_vgpu_device_info(call: Call) -> list[Any]:
    return devices([call.subject])


@handles("RefreshGraphicsManager")
def refresh(call: Call) -> None:
    # vSphere API: it refreshes the graphics information; until then a host's books may be late.
    graphics_books.refresh(call.center.estate, call.subject)


def profiles(hosts: Iterable[Host]) -> list[Any]:
    found = {}
    for card in (card for host in hosts for card in host.cards):
        for vgpu, offer in card.spec.offers.items():
            found[vgpu] = vim.vm.VgpuProfileInfo(
                name=vgpu,
                profileName=vgpu,
                deviceVendorId=_id_of(card.spec.model),
                fbSizeInGib=offer.frame_gb,
                profileSharing=_SHARING[card.spec.mode],
                profileClass=_CLASSES[card.spec.canonical_type(vgpu)[-1]],
            )
    return list(found.values())


def devices(hosts: Iterable[Host]) -> list[Any]:
    models = {card.spec.model.name: card.spec.model for host in hosts for card in host.cards}
    return [_device(model) for model in models.values()]


def _device(model: CardModel) -> Any:
    types = [vgpu for offers in model.offers.values() for vgpu in offers]
    return vim.vm.VgpuDeviceInfo(
        name=model.device_name,
        deviceName=model.device_name,
        deviceVendorId=_id_of(model),
        maxFbSizeInGib=model.frame_mib >> 10,
        timeSlicedCapable=True,
        migCapable=CardMode.MIG in model.offers,
        computeProfileCapable=any(vgpu.endswith("c") for vgpu in types),
        quadroProfileCapable=any(vgpu.endswith("q") for vgpu in types),
    )


def _id_of(model: CardModel) -> int:
    """Return the device's PCI id in the upper half and the vendor's in the lower, as the API documents it."""
    return model.device_id << 16 | NVIDIA

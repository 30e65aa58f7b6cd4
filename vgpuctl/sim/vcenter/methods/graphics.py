"""What a host's GraphicsManager says of its vGPU types and cards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vgpuctl.sim.card_models import CardMode, CardModel
from vgpuctl.sim.vcenter.inventory.host_properties import NVIDIA
from vgpuctl.sim.vcenter.physics.records import Host
from vgpuctl.sim.vcenter.wire.dispatch import Call, answers
from vgpuctl.sim.vcenter.wire.vmomi import vim

_CLASSES = {"q": "quadro", "c": "compute"}
_SHARING = {
    CardMode.SAME_SIZE: "timeSliced",
    CardMode.MIXED_SIZE: "timeSliced",
    CardMode.MIG: "mig",
}


@answers("RetrieveVgpuProfileInfo")
def retrieve_vgpu_profile_info(call: Call) -> list[Any]:
    return profiles([call.subject])


@answers("RetrieveVgpuDeviceInfo")
def retrieve_vgpu_device_info(call: Call) -> list[Any]:
    return devices([call.subject])


@answers("RefreshGraphicsManager")
def refresh(call: Call) -> None:
    """What it would fetch from the host is never old here."""


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
    """The PCI vendor's id in the lower half, the device's in the upper, as the API documents it."""
    return model.device_id << 16 | NVIDIA

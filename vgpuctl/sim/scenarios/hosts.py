"""Reads the hosts of a scenario, and their cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vgpuctl.sim.card_models import GIB_IN_MIB, MODELS, CardMode
from vgpuctl.sim.inventory import ESXI_BUILD, VGPU_MANAGER, CardSpec, HostSpec, pci_id
from vgpuctl.sim.scenarios.reader import ScenarioReader, Section
from vgpuctl.sim.words import nearest

#: vSphere API: `HostGraphicsConfig.sharedPassthruAssignmentPolicy`.
POLICIES = ("performance", "consolidation")
#: vSphere: only `sharedDirect` cards hold vGPUs; `shared` is for ESXi's own graphics.
GRAPHICS = ("sharedDirect", "shared")
MODES = {"same-size": CardMode.SAME_SIZE, "mixed-size": CardMode.MIXED_SIZE, "mig": CardMode.MIG}
HOST_KEYS = (
    "name",
    "cards",
    "policy",
    "memory",
    "maintenance",
    "unsuspendable",
    "datacenter",
    "cluster",
    "datastore",
    "build",
    "vgpu-manager",
    "crashed",
)


class HostReader:
    def __init__(self, reader: ScenarioReader) -> None:
        self._reader = reader

    def read(self, value: Any) -> dict[str, HostSpec]:
        """Return the hosts of the scenario's list, by their names."""
        hosts: dict[str, HostSpec] = {}
        for key, item in self._reader.items(value, "hosts", HOST_KEYS):
            unsuspendable = item.get("unsuspendable")
            for name in self._reader.names(item, key):
                if name in hosts:
                    self._reader.add_problem(f"{key}.name", f"{name} is there twice")
                hosts[name] = HostSpec(
                    name=name,
                    cards=self._cards(item.get("cards") or [], f"{key}.cards"),
                    policy=self._reader.choice(item, "policy", key, POLICIES, "performance"),
                    memory_mib=self._reader.mib(item, "memory", key) or 4096 * GIB_IN_MIB,
                    in_maintenance=self._reader.boolean(item, "maintenance", key),
                    crashed=self._reader.boolean(item, "crashed", key),
                    unsuspendable=self._reader.texts(unsuspendable, f"{key}.unsuspendable") if unsuspendable else (),
                    build=self._reader.text(item, "build", key, ESXI_BUILD),
                    vgpu_manager=self._reader.text(item, "vgpu-manager", key, VGPU_MANAGER),
                    datacenter=self._reader.place(item, "datacenter", key, "dc"),
                    cluster=self._reader.place(item, "cluster", key, ""),
                    datastore=self._reader.place(item, "datastore", key, "store"),
                )
        if not hosts:
            self._reader.add_problem("hosts", "at least one is needed")
        return hosts

    def _cards(self, value: Any, key: str) -> tuple[CardSpec, ...]:
        """Each card is a model's name, or a mapping with model and mode."""
        if not isinstance(value, list):
            self._reader.add_problem(key, "must be a list of models, such as [V100-16]")
            return ()
        plain = [{"model": card} if isinstance(card, str) else card for card in value]
        cards: list[CardSpec] = []
        for index, (card_key, item) in enumerate(self._reader.items(plain, key, ("model", "mode", "also", "graphics"))):
            name = self._reader.text(item, "model", card_key)
            mode = MODES[self._reader.choice(item, "mode", card_key, MODES, "same-size")]
            model = MODELS.get(name)
            if model is None:
                self._reader.add_problem(f"{card_key}.model", f"no card is named {name!r}{nearest(name, MODELS)}")
            elif not model.offers.get(mode):
                self._reader.add_problem(f"{card_key}.mode", f"{name} does not have this mode")
            else:
                aliases = self._aliases(item, card_key, model.offers[mode])
                graphics = self._reader.choice(item, "graphics", card_key, GRAPHICS, GRAPHICS[0])
                cards.append(CardSpec(pci_id(index), model, mode, aliases, shared=graphics != GRAPHICS[0]))
        return tuple(cards)

    def _aliases(self, item: Section, key: str, offers: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
        """Return vGPU types under other names, each with the card's type that it stands for."""
        aliases = {name: str(vgpu) for name, vgpu in self._reader.mapping(item.get("also"), f"{key}.also").items()}
        for name, vgpu in aliases.items():
            if vgpu not in offers:
                self._reader.add_problem(f"{key}.also.{name}", f"the card has no type {vgpu!r}{nearest(vgpu, offers)}")
        return tuple((name, vgpu) for name, vgpu in aliases.items() if vgpu in offers)

"""Reads the VMs of a scenario: where they are, what they have, and in which state they begin."""

from __future__ import annotations

import math
from collections.abc import Mapping

from vgpuctl.sim.card_models import GIB_IN_MIB
from vgpuctl.sim.inventory import CLOCKS, DRS_DISABLED, FULLY_AUTOMATED, MANUAL, TOOLS, HostSpec, VmSpec
from vgpuctl.sim.scenarios.reader import ScenarioReader, Section

VM_KEYS = (
    "name",
    "host",
    "memory",
    "cpus",
    "power",
    "suspended-under",
    "vgpus",
    "reserved",
    "firmware",
    "sriov",
    "tools",
    "clock",
    "question",
    "managed-by",
    "drs",
    "must-run-on",
    "node",
    "gpu-stack",
    "vm-name",
    "folder",
    "datastore",
    "suspend-datastore",
    "extra-config",
)
#: vSphere API: DrsBehavior, in words with hyphens. The cluster has one, and a VM may have another.
DRS = {
    "off": FULLY_AUTOMATED,
    "on": FULLY_AUTOMATED,
    "manual": MANUAL,
    "partially-automated": "partiallyAutomated",
    "fully-automated": FULLY_AUTOMATED,
}
OVERRIDES = {"": "", DRS_DISABLED: DRS_DISABLED, **{word: DRS[word] for word in DRS if word not in ("off", "on")}}
#: A GPU stack that does not come up: a device plugin that never starts.
NEVER = "never"


class VmReader:
    """Collects the VMs of all sections, so that a name or path is unique among all of them."""

    def __init__(self, reader: ScenarioReader, hosts: Mapping[str, HostSpec]) -> None:
        self.vms: dict[str, VmSpec] = {}
        self._reader = reader
        self._hosts = hosts
        self._paths: dict[str, str] = {}

    def add(self, key: str, item: Section) -> list[str]:
        """Add the VMs of one section; return their names."""
        names = self._reader.names(item, key)
        hosts = self._hosts_for(item, key)
        vm_names = self._vm_names(item, key, names)
        vgpus = item.get("vgpus")
        power = self._reader.choice(item, "power", key, ("on", "off", "suspended"), "off")
        suspended_under = self._reader.text(item, "suspended-under", key)
        if suspended_under and power != "suspended":
            self._reader.add_problem(f"{key}.suspended-under", "is for a VM whose power is suspended")
        for number, name in enumerate(names):
            if name in self.vms:
                self._reader.add_problem(f"{key}.name", f"{name} is there twice")
            self.vms[name] = VmSpec(
                name=name,
                host=hosts[number * len(hosts) // len(names)],
                memory_mib=self._reader.mib(item, "memory", key) or 16 * GIB_IN_MIB,
                cpus=self._reader.number(item, "cpus", key, 8, most=768),
                powered_on=power == "on",
                suspended=power == "suspended",
                suspended_under=suspended_under,
                vgpus=self._reader.texts(vgpus, f"{key}.vgpus") if vgpus else (),
                # vSphere: a VM with a vGPU needs all its memory reserved.
                memory_locked=self._reader.boolean(item, "reserved", key, bool(vgpus)),
                # NVIDIA AI Enterprise: cards with large BARs need EFI.
                bios=self._reader.choice(item, "firmware", key, ("efi", "bios"), "efi") == "bios",
                sriov=self._reader.boolean(item, "sriov", key),
                tools=self._reader.boolean(item, "tools", key, True),
                clock=self._reader.choice(item, "clock", key, CLOCKS, TOOLS),
                question=self._reader.text(item, "question", key),
                managed_by=self._reader.text(item, "managed-by", key),
                drs=OVERRIDES[self._reader.choice(item, "drs", key, OVERRIDES, "")],
                must_run_on=self._must_run_on(item, key),
                has_node=self._reader.boolean(item, "node", key, True),
                gpu_stack_s=self._gpu_stack_s(item, key),
                vm_name=vm_names[number],
                folder=self._reader.text(item, "folder", key).strip("/"),
                datastore=self._reader.place(item, "datastore", key, ""),
                suspend_datastore=self._reader.place(item, "suspend-datastore", key, ""),
                extra_config=self._extra_config(item, key),
            )
            self._check_path(self.vms[name], key)
        return names

    def _gpu_stack_s(self, item: Section, key: str) -> float | None:
        """Return how long a VM's GPU stack takes, or infinity if it never comes up."""
        return math.inf if item.get("gpu-stack") == NEVER else self._reader.seconds(item, "gpu-stack", key)

    def _extra_config(self, item: Section, key: str) -> tuple[tuple[str, str], ...]:
        """Return settings as vSphere keeps them: as texts."""
        settings = self._reader.mapping(item.get("extra-config"), f"{key}.extra-config")
        return tuple((name, str(value)) for name, value in settings.items())

    def _vm_names(self, item: Section, key: str, names: list[str]) -> list[str]:
        """Return the names of the VMs in vCenter; "" for a VM that is named as its node."""
        if "vm-name" not in item:
            return [""] * len(names)
        found = self._reader.names(item, key, "vm-name")
        if len(found) != len(names):
            self._reader.add_problem(f"{key}.vm-name", f"must be as many names as name has, which are {len(names)}")
            return [""] * len(names)
        return found

    def _check_path(self, vm: VmSpec, key: str) -> None:
        """Refuse a second VM of this name in the same folder."""
        # vSphere: a VM's name is unique in its folder only.
        datacenter = self._hosts[vm.host].datacenter if vm.host in self._hosts else ""
        path = f"/{datacenter}/vm/{vm.folder}/{vm.vm_name or vm.name}".replace("//", "/")
        if self._paths.setdefault(path, vm.name) != vm.name:
            field = "vm-name" if vm.vm_name else "name"
            self._reader.add_problem(f"{key}.{field}", f"{path} is there twice")

    def _hosts_for(self, item: Section, key: str) -> list[str]:
        """Return one host, or a range of hosts over which the VMs are spread evenly, in order."""
        hosts = self._reader.names(item, key, "host") if "host" in item else list(self._hosts)[:1]
        for host in hosts:
            self._reader.require(host, f"{key}.host", "host", self._hosts)
        return hosts or [""]

    def _must_run_on(self, item: Section, key: str) -> str:
        host = self._reader.text(item, "must-run-on", key)
        if host:
            self._reader.require(host, f"{key}.must-run-on", "host", self._hosts)
        return host

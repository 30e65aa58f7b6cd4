"""Turns a scenario's YAML into the inventory that the simulated world begins with."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vgpuctl.sim.card_models import GIB_IN_MIB, MODELS, CardMode
from vgpuctl.sim.inventory import (
    CLOCKS,
    DRS_DISABLED,
    ESXI_BUILD,
    FULLY_AUTOMATED,
    MANUAL,
    TOOLS,
    VGPU_MANAGER,
    CardSpec,
    Durations,
    Group,
    Ha,
    HostSpec,
    Inventory,
    Licences,
    Shift,
    VmSpec,
    Workload,
    pci_id,
)
from vgpuctl.sim.scenarios.reader import ScenarioReader, Section
from vgpuctl.sim.words import nearest

#: vSphere API: `HostGraphicsConfig.sharedPassthruAssignmentPolicy`.
POLICIES = ("performance", "consolidation")
#: vSphere: only `sharedDirect` cards hold vGPUs; `shared` is for ESXi's own graphics.
GRAPHICS = ("sharedDirect", "shared")
MODES = {"same-size": CardMode.SAME_SIZE, "mixed-size": CardMode.MIXED_SIZE, "mig": CardMode.MIG}
KEYS = (
    "version",
    "cluster",
    "hosts",
    "profiles",
    "workers",
    "others",
    "shifts",
    "workloads",
    "datastore",
    "datastores",
    "drs",
    "hot-migration",
    "ha",
    "licences",
    "cluster-api",
    "gpu-stack",
    "cloud-provider",
)
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
#: vSphere API: DrsBehavior, in words with hyphens.
DRS = {
    "off": FULLY_AUTOMATED,
    "on": FULLY_AUTOMATED,
    "manual": MANUAL,
    "partially-automated": "partiallyAutomated",
    "fully-automated": FULLY_AUTOMATED,
}
OVERRIDES = {"": "", DRS_DISABLED: DRS_DISABLED, **{word: DRS[word] for word in DRS if word not in ("off", "on")}}
#: Kubernetes: names of workloads and values of labels.
_WORKLOAD_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
LONGEST_LABEL = 63
#: A GPU stack that does not come up: a device plugin that never starts.
NEVER = "never"
DEFAULT_STARTS = {"day": "0 8 * * *", "night": "0 20 * * *"}


def read_scenario(path: Path, durations: Durations) -> Inventory:
    """Return the inventory; raise BadScenario with all problems. `durations` receives those that the file sets."""
    reader = ScenarioReader(path)
    inventory = _Scenario(reader, durations).inventory()
    reader.finish()
    return inventory


class _Scenario:
    def __init__(self, reader: ScenarioReader, durations: Durations) -> None:
        self._reader = reader
        self._durations = durations
        self._document = reader.mapping(reader.document(), "", KEYS)
        self._hosts: dict[str, HostSpec] = {}
        self._vms: dict[str, VmSpec] = {}
        self._paths: dict[str, str] = {}
        self._profiles: dict[str, tuple[str, ...]] = {}
        self._workers: dict[str, list[str]] = {}

    def inventory(self) -> Inventory:
        if self._document.get("version") != 1:
            self._reader.add_problem("version", "must be 1")
        self._read_hosts()
        profiles = self._reader.mapping(self._document.get("profiles"), "profiles")
        self._profiles = {name: self._reader.texts(value, f"profiles.{name}") for name, value in profiles.items()}
        for name in self._profiles:
            # Kubernetes: a profile's name becomes a label's value on its nodes.
            if not _LABEL_VALUE.fullmatch(name) or len(name) > LONGEST_LABEL:
                self._reader.add_problem(f"profiles.{name}", "is no label's value")
        for key, item in self._reader.items(self._document.get("workers"), "workers", (*VM_KEYS, "profile")):
            names = self._add_vms(key, item)
            self._workers.setdefault(self._profile(item, key), []).extend(names)
        for key, item in self._reader.items(self._document.get("others"), "others", VM_KEYS):
            self._add_vms(key, item)
        takes_s = self._reader.seconds(self._document, "gpu-stack", "")
        self._durations.gpu_stack_s = self._durations.gpu_stack_s if takes_s is None else takes_s
        drs = self._reader.choice(self._document, "drs", "", DRS, "off")
        groups = tuple(Group(name, vgpus, tuple(self._workers.get(name, ()))) for name, vgpus in self._profiles.items())
        return Inventory(
            cluster=self._reader.text(self._document, "cluster", "", "gpu"),
            hosts=tuple(self._hosts.values()),
            vms=tuple(self._vms.values()),
            groups=tuple(group for group in groups if group.workers),
            shifts=self._shifts(),
            workloads=self._workloads(),
            datastore_free_mib=self._datastore(),
            datastores=self._datastores(),
            drs=drs != "off",
            drs_behaviour=DRS[drs],
            hot_migration=self._reader.boolean(self._document, "hot-migration", ""),
            cluster_api=self._reader.boolean(self._document, "cluster-api", ""),
            cloud_provider=self._reader.boolean(self._document, "cloud-provider", ""),
            ha=self._ha(),
            licences=self._licences(),
        )

    def _read_hosts(self) -> None:
        for key, item in self._reader.items(self._document.get("hosts"), "hosts", HOST_KEYS):
            unsuspendable = item.get("unsuspendable")
            for name in self._reader.names(item, key):
                if name in self._hosts:
                    self._reader.add_problem(f"{key}.name", f"{name} is there twice")
                host = HostSpec(
                    name=name,
                    cards=self._cards(item.get("cards") or [], f"{key}.cards"),
                    policy=self._reader.choice(item, "policy", key, POLICIES, "performance"),
                    memory_mib=self._reader.mib(item, "memory", key) or 4096 * GIB_IN_MIB,
                    in_maintenance=self._reader.boolean(item, "maintenance", key),
                    crashed=self._reader.boolean(item, "crashed", key),
                    unsuspendable=self._reader.texts(unsuspendable, f"{key}.unsuspendable") if unsuspendable else (),
                    build=self._reader.text(item, "build", key, ESXI_BUILD),
                    vgpu_manager=self._reader.text(item, "vgpu-manager", key, VGPU_MANAGER),
                    datacenter=self._place(item, "datacenter", key, "dc"),
                    cluster=self._place(item, "cluster", key, ""),
                    datastore=self._place(item, "datastore", key, "store"),
                )
                self._hosts[name] = host
        if not self._hosts:
            self._reader.add_problem("hosts", "at least one is needed")

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

    def _add_vms(self, key: str, item: Section) -> list[str]:
        names = self._reader.names(item, key)
        hosts = self._hosts_for(item, key)
        vm_names = self._vm_names(item, key, names)
        vgpus = item.get("vgpus")
        power = self._reader.choice(item, "power", key, ("on", "off", "suspended"), "off")
        suspended_under = self._reader.text(item, "suspended-under", key)
        if suspended_under and power != "suspended":
            self._reader.add_problem(f"{key}.suspended-under", "is for a VM whose power is suspended")
        for number, name in enumerate(names):
            if name in self._vms:
                self._reader.add_problem(f"{key}.name", f"{name} is there twice")
            self._vms[name] = VmSpec(
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
                datastore=self._place(item, "datastore", key, ""),
                suspend_datastore=self._place(item, "suspend-datastore", key, ""),
                extra_config=self._extra_config(item, key),
            )
            self._check_path(self._vms[name], key)
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

    def _place(self, item: Section, name: str, key: str, default: str) -> str:
        """Return the name of a datacenter, cluster or datastore. A slash would end it in an inventory path."""
        place = self._reader.text(item, name, key, default)
        if set(place) & set("/[]"):
            self._reader.add_problem(f"{key}.{name}", f"{place!r} must be a name without / and brackets")
        return place

    def _hosts_for(self, item: Section, key: str) -> list[str]:
        """Return one host, or a range of hosts over which the VMs are spread evenly, in order."""
        hosts = self._reader.names(item, key, "host") if "host" in item else list(self._hosts)[:1]
        for host in hosts:
            self._require_host(host, f"{key}.host")
        return hosts or [""]

    def _must_run_on(self, item: Section, key: str) -> str:
        host = self._reader.text(item, "must-run-on", key)
        if host:
            self._require_host(host, f"{key}.must-run-on")
        return host

    def _require_host(self, host: str, key: str) -> None:
        self._require(host, key, "host", self._hosts)

    def _require(self, name: str, key: str, kind: str, known: Iterable[str]) -> None:
        if name not in (names := list(known)):
            self._reader.add_problem(key, f"there is no {kind} {name!r}{nearest(name, names)}")

    def _profile(self, item: Section, key: str) -> str:
        name = self._reader.text(item, "profile", key)
        self._require(name, f"{key}.profile", "profile", self._profiles)
        return name

    def _shifts(self) -> tuple[Shift, ...]:
        """A shift is a list of its profiles, or a mapping with profiles and start. Without shifts, all profiles are
        awake by day.
        """
        if not self._document.get("shifts"):
            return (Shift("day", DEFAULT_STARTS["day"], tuple(self._profiles)),)
        shifts: list[Shift] = []
        for name, value in self._reader.mapping(self._document.get("shifts"), "shifts").items():
            key = f"shifts.{name}"
            item = value if isinstance(value, Mapping) else {"profiles": value}
            self._reader.mapping(item, key, ("starts", "profiles"))
            profiles = self._reader.texts(item.get("profiles"), f"{key}.profiles")
            for profile in profiles:
                self._require(profile, f"{key}.profiles", "profile", self._profiles)
            shifts.append(
                Shift(name, self._reader.text(item, "starts", key, DEFAULT_STARTS.get(name, "0 12 * * *")), profiles)
            )
        return tuple(shifts)

    def _workloads(self) -> tuple[Workload, ...]:
        """Without workloads in the file, each worker gets one pod."""
        if "workloads" not in self._document:
            return self._usual_workloads()
        known = ("name", "replicas", "kind", "profile", "budget", "after-first-shift")
        names: set[str] = set()
        return tuple(
            Workload(
                name=self._workload_name(item, key, names),
                replicas=self._reader.number(item, "replicas", key, 1),
                kind=self._reader.choice(item, "kind", key, ("Deployment", "Job"), "Deployment"),
                profile=self._profile(item, key) if "profile" in item else None,
                budget=self._budget(item.get("budget"), f"{key}.budget"),
                after_day=self._reader.boolean(item, "after-first-shift", key),
            )
            for key, item in self._reader.items(self._document.get("workloads"), "workloads", known)
        )

    def _usual_workloads(self) -> tuple[Workload, ...]:
        made: dict[str, Workload] = {}
        for profile, workers in self._workers.items():
            if profile in self._profiles:
                name = _pods_of(profile)
                if name in made:
                    self._reader.add_problem(f"profiles.{profile}", f"its pods would be called {name}, too")
                made[name] = Workload(name=name, replicas=len(workers), profile=profile)
        return tuple(made.values())

    def _workload_name(self, item: Section, key: str, names: set[str]) -> str:
        """Return a name that no other workload has: its pods' label and its budget are called by it."""
        name = self._reader.text(item, "name", key)
        if not item.get("name"):
            self._reader.add_problem(key, "needs a name")
        # Kubernetes: an RFC 1123 subdomain, and 63 characters at most for a label's value and for a Job.
        elif not _WORKLOAD_NAME.fullmatch(name) or len(name) > LONGEST_LABEL:
            self._reader.add_problem(f"{key}.name", f"{name!r} must be of a-z, 0-9, - and ., {LONGEST_LABEL} at most")
        elif name in names:
            self._reader.add_problem(f"{key}.name", f"{name} is there twice")
        names.add(name)
        return name

    def _budget(self, value: Any, key: str) -> dict[str, int] | None:
        section = self._reader.mapping(value, key, ("min-available", "max-unavailable"))
        # Kubernetes: minAvailable and maxUnavailable cannot be both set.
        if len(section) > 1 and not section.keys() - {"min-available", "max-unavailable"}:
            self._reader.add_problem(key, "must set only one of min-available and max-unavailable")
        wire = {"min-available": "minAvailable", "max-unavailable": "maxUnavailable"}
        return {wire[name]: self._reader.number(section, name, key, 0) for name in section if name in wire} or None

    def _datastore(self) -> int:
        section = self._reader.mapping(self._document.get("datastore"), "datastore", ("free", "throughput"))
        free = self._reader.mib(section, "free", "datastore")
        self._durations.store_mib_per_s = self._reader.mib(section, "throughput", "datastore")
        return 90 * 1024 * GIB_IN_MIB if free is None else free

    def _licences(self) -> Licences | None:
        if "licences" not in self._document:
            return None
        section = self._reader.mapping(self._document.get("licences"), "licences", ("seats", "lease"))
        seats = self._reader.number(section, "seats", "licences", 0)
        lease_s = self._reader.seconds(section, "lease", "licences")
        return Licences(seats) if lease_s is None else Licences(seats, lease_s)

    def _datastores(self) -> tuple[tuple[str, int], ...]:
        """Return the room of single datastores."""
        section = self._reader.mapping(self._document.get("datastores"), "datastores")
        return tuple((name, self._reader.mib(section, name, "datastores") or 0) for name in section)

    def _ha(self) -> Ha | None:
        """Exactly one policy, as in vCenter."""
        if "ha" not in self._document:
            return None
        section = self._reader.mapping(self._document.get("ha"), "ha", ("memory-percent", "level", "slot", "hosts"))
        if sum(bool(section.get(policy)) for policy in ("memory-percent", "level", "hosts")) != 1:
            self._reader.add_problem("ha", "must set exactly one of memory-percent, level, hosts")
        hosts = self._reader.texts(section["hosts"], "ha.hosts") if section.get("hosts") else ()
        for host in hosts:
            self._require_host(host, "ha.hosts")
        return Ha(
            memory_percent=self._reader.number(section, "memory-percent", "ha", 0, most=100),
            level=self._reader.number(section, "level", "ha", 0, most=len(self._hosts)),
            slot_mib=self._reader.mib(section, "slot", "ha") or 0,
            hosts=hosts,
        )


def _pods_of(profile: str) -> str:
    """Return the name of a profile's usual workload."""
    return f"pods-of-{_NOT_IN_NAMES.sub('-', profile.lower())}"[:LONGEST_LABEL].rstrip("-")

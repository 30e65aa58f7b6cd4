"""Turns a scenario's YAML into the inventory that the simulated world begins with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vgpuctl.sim.card_models import GIB_IN_MIB
from vgpuctl.sim.inventory import Durations, Group, Ha, HostSpec, Inventory, Licences, Shift, Workload
from vgpuctl.sim.scenarios.hosts import HostReader
from vgpuctl.sim.scenarios.reader import ScenarioReader, Section
from vgpuctl.sim.scenarios.vms import DRS, VM_KEYS, VmReader

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
#: Kubernetes: names of workloads and values of labels.
_WORKLOAD_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
LONGEST_LABEL = 63
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
        self._profiles: dict[str, tuple[str, ...]] = {}
        self._workers: dict[str, list[str]] = {}

    def inventory(self) -> Inventory:
        if self._document.get("version") != 1:
            self._reader.add_problem("version", "must be 1")
        self._hosts = HostReader(self._reader).read(self._document.get("hosts"))
        profiles = self._reader.mapping(self._document.get("profiles"), "profiles")
        self._profiles = {name: self._reader.texts(value, f"profiles.{name}") for name, value in profiles.items()}
        for name in self._profiles:
            # Kubernetes: a profile's name becomes a label's value on its nodes.
            if not _LABEL_VALUE.fullmatch(name) or len(name) > LONGEST_LABEL:
                self._reader.add_problem(f"profiles.{name}", "is no label's value")
        vm_reader = VmReader(self._reader, self._hosts)
        for key, item in self._reader.items(self._document.get("workers"), "workers", (*VM_KEYS, "profile")):
            names = vm_reader.add(key, item)
            self._workers.setdefault(self._profile(item, key), []).extend(names)
        for key, item in self._reader.items(self._document.get("others"), "others", VM_KEYS):
            vm_reader.add(key, item)
        takes_s = self._reader.seconds(self._document, "gpu-stack", "")
        self._durations.gpu_stack_s = self._durations.gpu_stack_s if takes_s is None else takes_s
        drs = self._reader.choice(self._document, "drs", "", DRS, "off")
        groups = tuple(Group(name, vgpus, tuple(self._workers.get(name, ()))) for name, vgpus in self._profiles.items())
        return Inventory(
            cluster=self._reader.text(self._document, "cluster", "", "gpu"),
            hosts=tuple(self._hosts.values()),
            vms=tuple(vm_reader.vms.values()),
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

    def _profile(self, item: Section, key: str) -> str:
        name = self._reader.text(item, "profile", key)
        self._reader.require(name, f"{key}.profile", "profile", self._profiles)
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
                self._reader.require(profile, f"{key}.profiles", "profile", self._profiles)
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
            self._reader.require(host, "ha.hosts", "host", self._hosts)
        return Ha(
            memory_percent=self._reader.number(section, "memory-percent", "ha", 0, most=100),
            level=self._reader.number(section, "level", "ha", 0, most=len(self._hosts)),
            slot_mib=self._reader.mib(section, "slot", "ha") or 0,
            hosts=hosts,
        )


def _pods_of(profile: str) -> str:
    """Return the name of a profile's usual workload."""
    return f"pods-of-{_NOT_IN_NAMES.sub('-', profile.lower())}"[:LONGEST_LABEL].rstrip("-")

"""Profiles, and which VMs should carry them: the content of profiles.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property

from vgpuctl.basics.names import Names, is_glob
from vgpuctl.model.hosts import TypeFacts

DEFAULT_LABEL = "vgpu.type"


@dataclass(frozen=True, slots=True)
class Profile:
    """One way to equip a worker: a name for people and labels, and the vSphere vGPU types behind it.

    `where`: its place in the file. `type_facts`: what the file says of the type beyond its name.
    """

    name: str
    vgpus: tuple[str, ...]
    where: str = field(default="", compare=False)
    type_facts: TypeFacts | None = None


#: The profile of a worker that shall carry no vGPU.
NONE = Profile("none", ())


@dataclass(frozen=True, slots=True)
class Candidate:
    """The properties of a VM that entries choose by. `folder` is its inventory path, such as /dc-1/vm/gpu."""

    name: str
    folder: str = ""
    cluster: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WorkerRule:
    """One entry of `workers`: VMs that meet all its conditions carry this profile. `where`: its place in the file.

    Labels only narrow what vCenter decides. A kubelet writes its node's labels and its VM's id itself, so labels alone
    would let any node make any VM a worker.
    """

    profile: str
    names: Names | None = None
    folder: str = ""
    cluster: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    where: str = ""

    def takes(self, vm: Candidate) -> bool:
        return (
            # Decision 0017: a new Node that bore the label and claimed a foreign VM's uuid had that VM suspended.
            not self.by_labels_alone
            and (self.names is None or vm.name in self.names)
            and (not self.folder or _inside(vm.folder, self.folder))
            and (not self.cluster or fnmatchcase(vm.cluster, self.cluster))
            and all(vm.labels.get(key) == value for key, value in self.labels.items())
        )

    @property
    def by_labels_alone(self) -> bool:
        """True if no condition is left to vCenter. A glob of nothing but `*` and `?` is no condition."""
        patterns = self.names.patterns if self.names else ()
        narrows = _narrows(self.folder) or _narrows(self.cluster) or bool(patterns and all(map(_narrows, patterns)))
        return bool(self.labels) and not narrows

    @property
    def by_name_alone(self) -> bool:
        return self.names is not None and not (self.folder or self.cluster or self.labels)


def _narrows(pattern: str) -> bool:
    return bool(pattern.strip("*?/"))


def _inside(folder: str, wanted: str) -> bool:
    """True if the folder is this one or below it. A `*` stands for any one part of the path."""
    have, want = folder.strip("/").split("/"), wanted.strip("/").split("/")
    return len(have) >= len(want) and all(fnmatchcase(part, pattern) for part, pattern in zip(have, want, strict=False))


@dataclass(frozen=True)
class Catalogue:
    """All profiles, and which worker carries which. A VM that no choice takes is never touched."""

    profiles: Mapping[str, Profile]
    choices: tuple[WorkerRule, ...] = ()
    label: str = DEFAULT_LABEL

    @cached_property
    def _by_vgpus(self) -> Mapping[tuple[str, ...], str]:
        return {tuple(sorted(profile.vgpus)): profile.name for profile in self.profiles.values()}

    @cached_property
    def type_facts(self) -> tuple[TypeFacts, ...]:
        """Return what the file says of vGPU types."""
        return tuple(dict.fromkeys(profile.type_facts for profile in self.profiles.values() if profile.type_facts))

    def profile(self, name: str) -> Profile:
        return NONE if name == NONE.name else self.profiles[name]

    def called(self, name: str) -> str | None:
        """Return the profile of this name, or the profile that is just this vGPU type; `none` means no vGPU."""
        return name if name in self.profiles or name == NONE.name else self._by_vgpus.get((name,))

    def carried(self, vgpus: tuple[str, ...]) -> str | None:
        """Return the profile of these devices; None for no devices, or if they are no profile of ours."""
        return self._by_vgpus.get(tuple(sorted(vgpus)))

    @cached_property
    def named(self) -> Mapping[str, str]:
        """Return each worker that is written out by name alone, with its profile. These are known without vCenter."""
        return {name: choice.profile for name, choice in self._plainly.items()}

    def where(self, name: str) -> str:
        """Return the place in the file of a worker that is written out by name."""
        return self._plainly[name].where

    def may_name(self, name: str) -> bool:
        """True if a VM of this name could be a worker."""
        return name in self.named or self._may_be_called is None or name in self._may_be_called

    @cached_property
    def _may_be_called(self) -> Names | None:
        """Return all patterns of all entries; None if an entry asks for no name."""
        if any(choice.names is None for choice in self.choices):
            return None
        return Names(tuple(pattern for choice in self.choices if choice.names for pattern in choice.names.patterns))

    def chosen(self, vm: Candidate) -> tuple[WorkerRule, ...]:
        """Return the choices that take this VM, one for each profile: several contradict each other.

        A name that is written out decides.
        """
        # Decision 0010: a VM whose name is written out obeys that entry; other entries choose among the rest.
        if vm.name in self._plainly:
            return (self._plainly[vm.name],)
        return tuple({choice.profile: choice for choice in self._searched if choice.takes(vm)}.values())

    @cached_property
    def _searched(self) -> tuple[WorkerRule, ...]:
        """Return the choices that may take a VM that is not written out by name alone."""
        return tuple(
            choice
            for choice in self.choices
            if not (choice.by_name_alone and choice.names and not any(map(is_glob, choice.names.patterns)))
        )

    @cached_property
    def _plainly(self) -> Mapping[str, WorkerRule]:
        return {
            name: choice
            for choice in self.choices
            if choice.by_name_alone and choice.names
            for name in choice.names.plain
        }

    @property
    def asks_folders(self) -> bool:
        return any(choice.folder for choice in self.choices)

    @property
    def asks_clusters(self) -> bool:
        return any(choice.cluster for choice in self.choices)

    @cached_property
    def asks_labels(self) -> bool:
        return any(choice.labels for choice in self.choices)

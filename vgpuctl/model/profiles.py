"""Profiles, and which worker should carry which: the content of profiles.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT_LABEL = "vgpu.type"

_SIZE = re.compile(r"-(?:\d+-)?(\d+)[a-z]+$")
_RANGE = re.compile(r"\[(\d+)-(\d+)\]")


def frame_gib(vgpu: str) -> int | None:
    """The frame buffer that a vGPU type takes, in GiB, as its name says; None where the name says nothing."""
    match = _SIZE.search(vgpu)
    return int(match.group(1)) if match else None


@dataclass(frozen=True, slots=True)
class Profile:
    """One way to equip a worker: a name for people and labels, and the vSphere vGPU types behind it."""

    name: str
    vgpus: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All profiles, and the profile of each worker that our files name."""

    profiles: Mapping[str, Profile]
    workers: Mapping[str, str]
    label: str = DEFAULT_LABEL
    _by_vgpus: dict[tuple[str, ...], str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_vgpus.update({tuple(sorted(p.vgpus)): p.name for p in self.profiles.values()})

    def wanted(self, worker: str) -> Profile:
        return self.profiles[self.workers[worker]]

    def carried(self, vgpus: tuple[str, ...]) -> str | None:
        """The profile that these devices amount to; None for no devices, or for devices that are no profile of ours."""
        return self._by_vgpus.get(tuple(sorted(vgpus)))

    def workers_with(self, profile: str) -> tuple[str, ...]:
        return tuple(worker for worker, name in self.workers.items() if name == profile)


def expand(pattern: str) -> list[str]:
    """`worker-[1-4]` → worker-1 … worker-4; a plain name stands for itself."""
    match = _RANGE.search(pattern)
    if match is None:
        return [pattern]
    first, last = match.groups()
    width = len(first) if first.startswith("0") else 0
    middle = [str(n).zfill(width) for n in range(int(first), int(last) + 1)]
    return [name for part in middle for name in expand(pattern[: match.start()] + part + pattern[match.end() :])]

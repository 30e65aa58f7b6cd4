"""profiles.yaml: profiles, and which worker carries which."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vgpuctl.files.reading import Reading, nearest
from vgpuctl.model.profiles import DEFAULT_LABEL, Catalogue, Profile

_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def read_catalogue(path: Path) -> Catalogue:
    reading = Reading(path)
    found = reading.document(("version", "label", "profiles", "workers"))
    label = found.get("label", DEFAULT_LABEL)
    if not isinstance(label, str) or not _is_label_key(label):
        reading.wrong("label", f"{label!r} is no label key")
    profiles = {
        name: profile
        for name, value in reading.mapping(found.get("profiles"), "profiles").items()
        if (profile := _profile(reading, name, value))
    }
    _all_different(reading, profiles)
    workers = _workers(reading, found, profiles)
    reading.finish()
    return Catalogue(profiles=profiles, workers=workers, label=label)


def profile_name(name: str, profiles: Mapping[str, Profile]) -> str | None:
    """A profile's name, or the plain vGPU type behind one."""
    if name in profiles:
        return name
    return next((profile.name for profile in profiles.values() if profile.vgpus == (name,)), None)


def _is_label_key(label: str) -> bool:
    prefix, slash, name = label.rpartition("/")
    return bool(_LABEL_VALUE.fullmatch(name)) and (not slash or bool(_LABEL_PREFIX.fullmatch(prefix)))


def _profile(reading: Reading, name: str, value: Any) -> Profile | None:
    key = f"profiles.{name}"
    if not _LABEL_VALUE.fullmatch(name):
        reading.wrong(key, "cannot be a label's value (at most 63 of letters, digits, -_. with alphanumeric ends)")
    entry = {"vgpu": value} if isinstance(value, str) else reading.mapping(value, key)
    reading.known(entry, ("vgpu",), f"{key}.")
    vgpus = reading.texts(entry.get("vgpu"), f"{key}.vgpu")
    if not vgpus:
        reading.wrong(f"{key}.vgpu", "must name a vSphere vGPU type, such as grid_v100-4q, or several")
        return None
    return Profile(name, vgpus)


def _all_different(reading: Reading, profiles: Mapping[str, Profile]) -> None:
    """Labels are told from devices, so no two profiles may be the same devices."""
    seen: dict[tuple[str, ...], str] = {}
    for profile in profiles.values():
        other = seen.setdefault(tuple(sorted(profile.vgpus)), profile.name)
        if other != profile.name:
            reading.wrong(f"profiles.{profile.name}", f"is the same vGPU as {other}")


def _workers(reading: Reading, found: Mapping[str, Any], profiles: Mapping[str, Profile]) -> dict[str, str]:
    workers: dict[str, str] = {}
    for pattern, wanted in reading.mapping(found.get("workers"), "workers").items():
        key = f"workers.{pattern}"
        known = profile_name(str(wanted), profiles)
        if known is None:
            reading.wrong(key, f"no profile {wanted}{nearest(str(wanted), profiles)}")
        for worker in reading.worker_names(pattern, key):
            if worker in workers:
                reading.wrong(key, f"{worker} is named twice")
            workers[worker] = known or ""
    return workers

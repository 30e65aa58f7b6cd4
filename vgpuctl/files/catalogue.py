"""profiles.yaml: the profiles, and which workers carry which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vgpuctl.files.reading import Reading
from vgpuctl.model.hosts import TypeFacts
from vgpuctl.model.profiles import DEFAULT_LABEL, NONE, Catalogue, Profile, WorkerRule

#: All cards together have some hundred vGPU types.
MOST_PROFILES = 1000

_FRAME = re.compile(r"([1-9][0-9]{0,3})(?: ?GB)?")
_CLASSES = ("C", "Q", "A", "B")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_WAYS_TO_CHOOSE = ("names", "folder", "cluster", "nodes")
_NODES_ALONE = (
    "chooses by nodes alone, but a node says itself how it is labelled and which VM it is. Add a line that vCenter "
    "decides, such as folder: /dc-1/vm/gpu (cluster: and names: will do, too, but not a * for every VM)"
)


def catalogue_of(reading: Reading) -> Catalogue:
    """Return as much of the catalogue as can be understood; its faults are in the reading."""
    found = reading.document(("version", "label", "profiles", "workers"))
    label = found.get("label", DEFAULT_LABEL)
    if not isinstance(label, str) or not is_label_key(label):
        reading.wrong("label", f"{label!r} is no label key")
    written = reading.mapping(found.get("profiles"), "profiles").items()
    profiles = {name: _profile(reading, name, value) for name, value in reading.few(written, MOST_PROFILES, "profiles")}
    _all_different(reading, profiles)
    _told_alike(reading, profiles)
    choices = tuple(_choices(reading, found.get("workers"), Catalogue(profiles)))
    _named_once(reading, choices)
    return Catalogue(profiles=profiles, choices=choices, label=label)


def is_label_key(label: str) -> bool:
    prefix, slash, name = label.rpartition("/")
    return bool(_LABEL_VALUE.fullmatch(name)) and (not slash or bool(_LABEL_PREFIX.fullmatch(prefix)))


def _profile(reading: Reading, name: str, value: Any) -> Profile:
    key = f"profiles.{name}"
    if not _LABEL_VALUE.fullmatch(name):
        reading.wrong(key, "cannot be a label's value (at most 63 of letters, digits, -_. with alphanumeric ends)")
    if name == NONE.name:
        reading.wrong(key, "stands for no vGPU already; choose another name")
    entry = {"vgpu": value} if isinstance(value, str | list) else reading.mapping(value, key)
    reading.known(entry, ("vgpu", "frame", "class"), f"{key}.")
    vgpus = reading.texts(entry.get("vgpu"), f"{key}.vgpu")
    if not vgpus:
        reading.wrong(f"{key}.vgpu", "must name a vSphere vGPU type, such as grid_v100-4q, or several")
    return Profile(name, vgpus, reading.where(key), _told(reading, entry, key, vgpus))


def _told(reading: Reading, entry: Mapping[str, Any], key: str, vgpus: tuple[str, ...]) -> TypeFacts | None:
    """Return what the file says about a profile's type. A worker may carry several vGPUs of one type."""
    if "frame" not in entry and "class" not in entry:
        return None
    if len(set(vgpus)) > 1:
        reading.wrong(key, "frame and class are said of one type, and here are several; give each a profile of its own")
    frame = _FRAME.fullmatch(str(entry.get("frame", "")))
    if "frame" in entry and frame is None:
        reading.wrong(f"{key}.frame", f"{entry['frame']!r} is no number of GB, such as 16 or 16GB")
    series = str(entry.get("class", ""))
    if "class" in entry and series not in _CLASSES:
        reading.wrong(f"{key}.class", f"{series!r} is none of {', '.join(_CLASSES)}")
    return TypeFacts(vgpus[0] if vgpus else "", int(frame[1]) if frame else None, series.lower())


def _all_different(reading: Reading, profiles: Mapping[str, Profile]) -> None:
    """Report profiles with the same devices: a label is derived from devices, so it needs them to differ."""
    seen: dict[tuple[str, ...], str] = {}
    for profile in profiles.values():
        other = seen.setdefault(tuple(sorted(profile.vgpus)), profile.name)
        if profile.vgpus and other != profile.name:
            reading.wrong(f"profiles.{profile.name}", f"is the same vGPU as {other}")


def _told_alike(reading: Reading, profiles: Mapping[str, Profile]) -> None:
    """Report profiles that describe the same type differently."""
    seen: dict[str, Profile] = {}
    for profile in profiles.values():
        if profile.told:
            other = seen.setdefault(profile.told.vgpu, profile)
            if other.told != profile.told:
                reading.wrong(f"profiles.{profile.name}", f"says another frame or class of its type than {other.name}")


def _choices(reading: Reading, value: Any, catalogue: Catalogue) -> Iterator[WorkerRule]:
    """Yield the rules: names with their profiles, or a list of entries, each with a profile and its conditions."""
    if not isinstance(value, list):
        for pattern, wanted in reading.mapping(value, "workers").items():
            key = f"workers.{pattern}"
            names = reading.names((pattern,), key)
            yield WorkerRule(profile=_known(reading, wanted, key, catalogue), names=names, where=reading.where(key))
        return
    for number, each in enumerate(value):
        key = f"workers[{number}]"
        entry = reading.mapping(each, key)
        reading.known(entry, ("profile", *_WAYS_TO_CHOOSE), f"{key}.")
        if not any(way in entry for way in _WAYS_TO_CHOOSE):
            reading.wrong(key, f"chooses nobody: add one of {', '.join(_WAYS_TO_CHOOSE)}")
        for way in ("names", "nodes"):
            if way in entry and not entry[way]:
                # Without any condition, every VM of vCenter would match.
                reading.wrong(f"{key}.{way}", "is empty: say what it chooses by, or leave it out")
        profile = _known(reading, entry.get("profile"), f"{key}.profile", catalogue)
        yield _choice(reading, entry, key, profile)


def _choice(reading: Reading, entry: dict[str, Any], key: str, profile: str) -> WorkerRule:
    names = reading.names(reading.texts(entry["names"], f"{key}.names"), f"{key}.names") if "names" in entry else None
    labels = reading.mapping(entry.get("nodes"), f"{key}.nodes")
    for label, value in labels.items():
        if not is_label_key(label) or not isinstance(value, str):
            reading.wrong(f"{key}.nodes.{label}", 'must be a node label and its value, a text: pool: "gpu"')
    choice = WorkerRule(
        profile=profile,
        names=names,
        folder=_text(reading, entry, key, "folder"),
        cluster=_text(reading, entry, key, "cluster"),
        labels=labels,
        where=reading.where(key),
    )
    if choice.by_labels_alone:
        reading.wrong(key, _NODES_ALONE)
    return choice


def _text(reading: Reading, entry: dict[str, Any], key: str, name: str) -> str:
    value = entry.get(name, "")
    if name in entry and not (isinstance(value, str) and value.strip("/")):
        reading.wrong(f"{key}.{name}", "must be a text")
        return ""
    return str(value)


def _known(reading: Reading, wanted: Any, key: str, catalogue: Catalogue) -> str:
    if not isinstance(wanted, str):
        reading.wrong(key, "must be a profile's name")
        return ""
    known = catalogue.called(wanted)
    if known is None:
        reading.wrong(key, f"no profile {wanted}{reading.near(wanted, catalogue.profiles)}")
    return known or ""


def _named_once(reading: Reading, choices: tuple[WorkerRule, ...]) -> None:
    """Report a name written out for several profiles: a written name decides, so it may stand once."""
    seen: dict[str, WorkerRule] = {}
    for choice in choices:
        for name in choice.names.plain if choice.names and choice.by_name_alone else ():
            if seen.setdefault(name, choice) is not choice:
                line = int(choice.where.rpartition(":")[2])
                reading.problems.append((line, f"workers: {name} is named twice"))

"""profiles.yaml: the profiles, and which workers carry which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from vgpuctl.files.reader import FileReader
from vgpuctl.model.hosts import TypeFacts
from vgpuctl.model.profiles import DEFAULT_LABEL, NONE, Catalogue, Profile, WorkerRule

#: All cards together have some hundred vGPU types.
MOST_PROFILES = 1000

_FRAME = re.compile(r"([1-9][0-9]{0,3})(?: ?GB)?")
#: NVIDIA: the series of a vGPU type, with which its name ends.
_CLASSES = ("C", "Q", "A", "B")
#: Kubernetes: a label's value has at most 63 characters, with a letter or digit at both ends. So has a key's name.
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
#: Kubernetes: a key's prefix is a DNS subdomain of at most 253 characters.
_LABEL_PREFIX = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_WAYS_TO_CHOOSE = ("names", "folder", "cluster", "nodes")
#: Decision 0017: a node that claimed a foreign VM's uuid and bore the label had that VM suspended.
_NODES_ALONE = (
    "chooses by node labels alone, but a node writes its own labels and its VM's identity. Add a condition that "
    "vCenter checks, such as folder: /dc-1/vm/gpu (or cluster: or names:, but not * for every VM)"
)


def parse_catalogue(reader: FileReader) -> Catalogue:
    """Return as much of the catalogue as can be understood; its faults are in the reader."""
    document = reader.read_document(("version", "label", "profiles", "workers"))
    label = document.get("label", DEFAULT_LABEL)
    if not isinstance(label, str) or not is_label_key(label):
        reader.add_fault("label", f"{label!r} is not a label key")
    written = reader.read_mapping(document.get("profiles"), "profiles").items()
    entries = reader.first_entries(written, MOST_PROFILES, "profiles")
    profiles = {name: _profile(reader, name, value) for name, value in entries}
    _check_devices_differ(reader, profiles)
    _check_types_agree(reader, profiles)
    rules = tuple(_rules(reader, document.get("workers"), Catalogue(profiles)))
    _check_names_unique(reader, rules)
    return Catalogue(profiles=profiles, choices=rules, label=label)


def is_label_key(label: str) -> bool:
    prefix, slash, name = label.rpartition("/")
    return bool(_LABEL_VALUE.fullmatch(name)) and (not slash or bool(_LABEL_PREFIX.fullmatch(prefix)))


def _profile(reader: FileReader, name: str, value: Any) -> Profile:
    key = f"profiles.{name}"
    if not _LABEL_VALUE.fullmatch(name):
        reader.add_fault(
            key,
            "cannot be a label's value: use at most 63 letters, digits, - _ . and begin and end with a letter or digit",
        )
    if name == NONE.name:
        reader.add_fault(key, "is reserved: it means no vGPU; choose another name")
    entry = {"vgpu": value} if isinstance(value, str | list) else reader.read_mapping(value, key)
    reader.check_keys(entry, ("vgpu", "frame", "class"), f"{key}.")
    # vSphere: a VM may carry several vGPUs since 6.7 U3.
    vgpus = reader.read_texts(entry.get("vgpu"), f"{key}.vgpu")
    if not vgpus:
        reader.add_fault(f"{key}.vgpu", "must name one or more vSphere vGPU types, such as grid_v100-4q")
    return Profile(name, vgpus, reader.place(key), _type_facts(reader, entry, key, vgpus))


def _type_facts(reader: FileReader, entry: Mapping[str, Any], key: str, vgpus: tuple[str, ...]) -> TypeFacts | None:
    """Return what the file says about a profile's type. A worker may carry several vGPUs of one type."""
    if "frame" not in entry and "class" not in entry:
        return None
    if len(set(vgpus)) > 1:
        reader.add_fault(
            key, "frame and class describe one vGPU type, but this profile has several; write a profile for each"
        )
    frame = _FRAME.fullmatch(str(entry.get("frame", "")))
    if "frame" in entry and frame is None:
        reader.add_fault(f"{key}.frame", f"{entry['frame']!r} is not a number of GB such as 16 or 16GB")
    series = str(entry.get("class", ""))
    if "class" in entry and series not in _CLASSES:
        reader.add_fault(f"{key}.class", f"{series!r} is not one of {', '.join(_CLASSES)}")
    return TypeFacts(vgpus[0] if vgpus else "", int(frame[1]) if frame else None, series.lower())


def _check_devices_differ(reader: FileReader, profiles: Mapping[str, Profile]) -> None:
    """Report profiles with the same devices: a label is derived from devices, so it needs them to differ."""
    seen: dict[tuple[str, ...], str] = {}
    for profile in profiles.values():
        other = seen.setdefault(tuple(sorted(profile.vgpus)), profile.name)
        if profile.vgpus and other != profile.name:
            reader.add_fault(f"profiles.{profile.name}", f"has the same vGPUs as profile {other}")


def _check_types_agree(reader: FileReader, profiles: Mapping[str, Profile]) -> None:
    """Report profiles that describe the same type differently."""
    seen: dict[str, Profile] = {}
    for profile in profiles.values():
        if profile.type_facts:
            other = seen.setdefault(profile.type_facts.vgpu, profile)
            if other.type_facts != profile.type_facts:
                reader.add_fault(
                    f"profiles.{profile.name}",
                    f"gives its vGPU type another frame or class than profile {other.name} does",
                )


def _rules(reader: FileReader, value: Any, catalogue: Catalogue) -> Iterator[WorkerRule]:
    """Yield the rules: names with their profiles, or a list of entries, each with a profile and its conditions."""
    if not isinstance(value, list):
        for pattern, profile_name in reader.read_mapping(value, "workers").items():
            key = f"workers.{pattern}"
            names = reader.read_names((pattern,), key)
            profile = known_profile(reader, profile_name, key, catalogue)
            yield WorkerRule(profile=profile, names=names, where=reader.place(key))
        return
    for number, each in enumerate(value):
        key = f"workers[{number}]"
        entry = reader.read_mapping(each, key)
        reader.check_keys(entry, ("profile", *_WAYS_TO_CHOOSE), f"{key}.")
        if not any(way in entry for way in _WAYS_TO_CHOOSE):
            reader.add_fault(key, f"chooses no VM: add one of {', '.join(_WAYS_TO_CHOOSE)}")
        for way in ("names", "nodes"):
            if way in entry and not entry[way]:
                # Without any condition, every VM of vCenter would match.
                reader.add_fault(f"{key}.{way}", "is empty: fill it in, or remove it")
        profile = known_profile(reader, entry.get("profile"), f"{key}.profile", catalogue)
        yield _rule(reader, entry, key, profile)


def _rule(reader: FileReader, entry: dict[str, Any], key: str, profile: str) -> WorkerRule:
    names = None
    if "names" in entry:
        names = reader.read_names(reader.read_texts(entry["names"], f"{key}.names"), f"{key}.names")
    labels = reader.read_mapping(entry.get("nodes"), f"{key}.nodes")
    for label, value in labels.items():
        if not is_label_key(label) or not isinstance(value, str):
            reader.add_fault(f"{key}.nodes.{label}", 'must be a node label and a string as its value: pool: "gpu"')
    rule = WorkerRule(
        profile=profile,
        names=names,
        folder=_text(reader, entry, key, "folder"),
        cluster=_text(reader, entry, key, "cluster"),
        labels=labels,
        where=reader.place(key),
    )
    if rule.by_labels_alone:
        reader.add_fault(key, _NODES_ALONE)
    return rule


def _text(reader: FileReader, entry: dict[str, Any], key: str, name: str) -> str:
    value = entry.get(name, "")
    if name in entry and not (isinstance(value, str) and value.strip("/")):
        reader.add_fault(f"{key}.{name}", "must be a string")
        return ""
    return str(value)


def known_profile(reader: FileReader, profile_name: Any, key: str, catalogue: Catalogue) -> str:
    """Return the profile's name in the catalogue; "" and a fault if there is none."""
    if not isinstance(profile_name, str):
        reader.add_fault(key, "must be the name of a profile")
        return ""
    found = catalogue.called(profile_name)
    if found is None:
        reader.add_fault(
            key, f"there is no profile {profile_name}{reader.suggestion(profile_name, catalogue.profiles)}"
        )
    return found or ""


def _check_names_unique(reader: FileReader, rules: tuple[WorkerRule, ...]) -> None:
    """Report a name that is listed for several profiles. A listed name decides, so it must be unique."""
    seen: dict[str, WorkerRule] = {}
    for rule in rules:
        for name in rule.names.plain if rule.names and rule.by_name_alone else ():
            if seen.setdefault(name, rule) is not rule:
                line = int(rule.where.rpartition(":")[2])
                reader.faults.append((line, f"workers: {name} is listed twice"))

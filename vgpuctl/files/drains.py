"""A timetable's `drain`: how pods leave, in general and for some namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from vgpuctl.basics.names import is_glob, overlap
from vgpuctl.files.labelled import NAMESPACE
from vgpuctl.files.reader import FileReader
from vgpuctl.model.errors import UsageError
from vgpuctl.model.selectors import Selector, parse_selector
from vgpuctl.model.timetable import DrainOptions

#: kubectl drain's own names.
_KEYS = ("timeout", "grace-period", "force", "delete-emptydir-data", "pod-selector", "skip-wait-for-delete-timeout")
#: Each glob is compared with every other.
MOST_NAMESPACES, MOST_GLOBS = 100, 30


def parse_drain(reader: FileReader, value: Any) -> DrainOptions:
    entry = reader.read_mapping(value, "drain")
    reader.check_keys(entry, (*_KEYS, "namespaces"), "drain.")
    defaults = _options(reader, entry, "drain", DrainOptions())
    return replace(defaults, namespaces=_namespaces(reader, entry.get("namespaces"), defaults))


def _namespaces(reader: FileReader, value: Any, defaults: DrainOptions) -> dict[str, DrainOptions]:
    """Return the options for each namespace; the general ones fill what it does not say."""
    found: dict[str, DrainOptions] = {}
    namespaces = reader.read_mapping(value, "drain.namespaces")
    for name, options in reader.first_entries(namespaces.items(), MOST_NAMESPACES, "drain.namespaces"):
        key = f"drain.namespaces.{name}"
        if not NAMESPACE.fullmatch(name):
            reader.add_fault(key, "is not the name of a namespace, or a glob such as team-*")
        entry = reader.read_mapping(options, key)
        reader.check_keys(entry, _KEYS, f"{key}.")
        found[name] = _options(reader, entry, key, defaults)
    globs = [name for name in found if is_glob(name)]
    if len(globs) > MOST_GLOBS:
        reader.add_fault("drain.namespaces", f"has more than {MOST_GLOBS} globs")
    for one, other in combinations(globs[:MOST_GLOBS], 2):
        if found[one] != found[other] and overlap(one, other):
            reader.add_fault(
                f"drain.namespaces.{other}", f"may match the same namespaces as {one}, but has other options"
            )
    return found


def _options(reader: FileReader, entry: Mapping[str, Any], key: str, defaults: DrainOptions) -> DrainOptions:
    def duration_s(name: str, default: float) -> float:
        return reader.read_duration(entry.get(name), f"{key}.{name}", default)

    def flag(name: str, default: bool) -> bool:
        return default if entry.get(name) is None else reader.read_bool(entry.get(name), f"{key}.{name}")

    no_grace = entry.get("grace-period") is None
    return DrainOptions(
        timeout_s=duration_s("timeout", defaults.timeout_s),
        grace_period_s=defaults.grace_period_s if no_grace else int(duration_s("grace-period", 0)),
        force=flag("force", defaults.force),
        delete_emptydir_data=flag("delete-emptydir-data", defaults.delete_emptydir_data),
        pod_selector=_selector(reader, entry.get("pod-selector"), f"{key}.pod-selector") or defaults.pod_selector,
        skip_wait_for_delete_timeout_s=duration_s(
            "skip-wait-for-delete-timeout", defaults.skip_wait_for_delete_timeout_s
        ),
    )


def _selector(reader: FileReader, value: Any, key: str) -> Selector | None:
    if value is None:
        return None
    if not isinstance(value, str):
        reader.add_fault(key, "must be a string such as app!=scratch")
        return None
    try:
        return parse_selector(value)
    except UsageError as error:
        reader.add_fault(key, error.message)
        return None

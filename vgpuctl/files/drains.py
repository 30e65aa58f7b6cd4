"""A timetable's `drain`: how pods leave, in general and for some namespaces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from vgpuctl.files.reading import Reading
from vgpuctl.model.errors import UsageError
from vgpuctl.model.names import is_glob, overlap
from vgpuctl.model.selectors import Selector, parse_selector
from vgpuctl.model.timetable import DrainOptions

_KEYS = ("timeout", "grace-period", "force", "delete-emptydir-data", "pod-selector", "skip-wait-for-delete-timeout")
#: Each glob is compared with every other.
MOST_NAMESPACES, MOST_GLOBS = 100, 30
_NAMESPACE = re.compile(r"[a-z0-9*?]([-a-z0-9*?]{0,61}[a-z0-9*?])?")


def drain_of(reading: Reading, value: Any) -> DrainOptions:
    entry = reading.mapping(value, "drain")
    reading.known(entry, (*_KEYS, "namespaces"), "drain.")
    general = _options(reading, entry, "drain", DrainOptions())
    return replace(general, namespaces=_namespaces(reading, entry.get("namespaces"), general))


def _namespaces(reading: Reading, value: Any, general: DrainOptions) -> dict[str, DrainOptions]:
    """Return the options for each namespace; the general ones fill what it does not say."""
    found: dict[str, DrainOptions] = {}
    namespaces = reading.mapping(value, "drain.namespaces")
    for name, mine in reading.few(namespaces.items(), MOST_NAMESPACES, "drain.namespaces"):
        key = f"drain.namespaces.{name}"
        if not _NAMESPACE.fullmatch(name):
            reading.wrong(key, "is no name of a namespace, or glob such as team-*")
        entry = reading.mapping(mine, key)
        reading.known(entry, _KEYS, f"{key}.")
        found[name] = _options(reading, entry, key, general)
    globs = [name for name in found if is_glob(name)]
    if len(globs) > MOST_GLOBS:
        reading.wrong("drain.namespaces", f"has more than {MOST_GLOBS} globs")
    for one, other in combinations(globs[:MOST_GLOBS], 2):
        if found[one] != found[other] and overlap(one, other):
            reading.wrong(f"drain.namespaces.{other}", f"may mean the same as {one}, and contradicts it")
    return found


def _options(reading: Reading, entry: Mapping[str, Any], key: str, otherwise: DrainOptions) -> DrainOptions:
    def duration_s(name: str, default: float) -> float:
        return reading.duration_s(entry.get(name), f"{key}.{name}", default)

    def yes(name: str, default: bool) -> bool:
        return default if entry.get(name) is None else reading.yes(entry.get(name), f"{key}.{name}")

    no_grace = entry.get("grace-period") is None
    return DrainOptions(
        timeout_s=duration_s("timeout", otherwise.timeout_s),
        grace_period_s=otherwise.grace_period_s if no_grace else int(duration_s("grace-period", 0)),
        force=yes("force", otherwise.force),
        delete_emptydir_data=yes("delete-emptydir-data", otherwise.delete_emptydir_data),
        pod_selector=_selector(reading, entry.get("pod-selector"), f"{key}.pod-selector") or otherwise.pod_selector,
        skip_wait_for_delete_timeout_s=duration_s(
            "skip-wait-for-delete-timeout", otherwise.skip_wait_for_delete_timeout_s
        ),
    )


def _selector(reading: Reading, value: Any, key: str) -> Selector | None:
    if value is None:
        return None
    if not isinstance(value, str):
        reading.wrong(key, "must be a text, such as app!=scratch")
        return None
    try:
        return parse_selector(value)
    except UsageError as error:
        reading.wrong(key, error.message)
        return None

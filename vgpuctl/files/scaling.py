"""A shift's `scale`: which workloads it scales to zero, by name or by labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vgpuctl.files.reading import Reading
from vgpuctl.model.errors import UsageError
from vgpuctl.model.selectors import parse_selector
from vgpuctl.model.workloads import OWNS_PODS, WorkloadSelector

#: Other words that people write for the kinds.
_KINDS = {"deploy": "deployment", "deployments": "deployment", "sts": "statefulset", "statefulsets": "statefulset"}
MOST_ENTRIES = 1000
#: The same pattern as in the schema.
_NAME = re.compile(r"[a-z0-9*?]([-.a-z0-9*?]*[a-z0-9*?])?")


def scale_of(reading: Reading, value: Any, key: str) -> tuple[WorkloadSelector, ...]:
    entries = value if isinstance(value, list) else [value] if value is not None else []
    return tuple(_choices(reading, reading.few(entries, MOST_ENTRIES, key), key))


def _choices(reading: Reading, entries: list[Any], key: str) -> Iterator[WorkloadSelector]:
    for entry in entries:
        if isinstance(entry, dict):
            found = _by_labels(reading, entry, key)
        elif isinstance(entry, str):
            found = _by_name(reading, entry, key)
        else:
            found = None
            reading.wrong(key, "must be namespace/kind/name, or a mapping with a selector")
        if found is not None:
            yield found


def _by_name(reading: Reading, text: str, key: str) -> WorkloadSelector | None:
    namespace, _, rest = text.partition("/")
    kind, _, name = rest.partition("/")
    if not (_NAME.fullmatch(namespace) and kind and _NAME.fullmatch(name)):
        reading.wrong(key, f"{text!r} is no namespace/kind/name, such as inference/deployment/gateway")
        return None
    known = _KINDS.get(kind, kind)
    if known not in OWNS_PODS:
        reading.wrong(key, f"{text}: of kind {kind} nothing is scaled{reading.near(kind, OWNS_PODS)}")
        return None
    return WorkloadSelector(namespace=namespace, kind=known, name=name)


def _by_labels(reading: Reading, entry: dict[str, Any], key: str) -> WorkloadSelector | None:
    """Return a selector. A selector without any label would choose every workload."""
    reading.known(entry, ("selector", "namespace"), f"{key}.")
    selector, namespace = entry.get("selector"), entry.get("namespace", "*")
    if not isinstance(selector, str) or not selector.strip():
        reading.wrong(key, "an entry that is a mapping needs a selector, such as vgpu-shift=day")
        return None
    if not isinstance(namespace, str) or not _NAME.fullmatch(namespace):
        reading.wrong(f"{key}.namespace", "is no name of a namespace, or glob such as team-*")
        return None
    try:
        return WorkloadSelector(namespace=namespace, selector=parse_selector(selector))
    except UsageError as error:
        reading.wrong(f"{key}.selector", error.message)
        return None

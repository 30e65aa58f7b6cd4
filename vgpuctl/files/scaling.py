"""A shift's `scale`: which workloads it scales to zero, by name or by labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vgpuctl.files.labelled import read_labelled
from vgpuctl.files.reader import FileReader
from vgpuctl.model.workloads import OWNS_PODS, WorkloadSelector

#: Other words that people write for the kinds.
_KINDS = {"deploy": "deployment", "deployments": "deployment", "sts": "statefulset", "statefulsets": "statefulset"}
MOST_ENTRIES = 1000
#: The same pattern as in the schema.
_NAME = re.compile(r"[a-z0-9*?]([-.a-z0-9*?]*[a-z0-9*?])?")


def parse_scale(reader: FileReader, value: Any, key: str) -> tuple[WorkloadSelector, ...]:
    entries = value if isinstance(value, list) else [value] if value is not None else []
    return tuple(_selectors(reader, reader.first_entries(entries, MOST_ENTRIES, key), key))


def _selectors(reader: FileReader, entries: list[Any], key: str) -> Iterator[WorkloadSelector]:
    for entry in entries:
        if isinstance(entry, dict):
            found = _by_labels(reader, entry, key)
        elif isinstance(entry, str):
            found = _by_name(reader, entry, key)
        else:
            found = None
            reader.add_fault(key, "must be namespace/kind/name, or a mapping with a selector")
        if found is not None:
            yield found


def _by_name(reader: FileReader, text: str, key: str) -> WorkloadSelector | None:
    namespace, _, rest = text.partition("/")
    kind, _, name = rest.partition("/")
    if not (_NAME.fullmatch(namespace) and kind and _NAME.fullmatch(name)):
        reader.add_fault(key, f"{text!r} is not namespace/kind/name, such as inference/deployment/gateway")
        return None
    # Decision 0013: the kinds that Kubernetes scales by spec.replicas, and whose pods are told by owner and selector.
    known = _KINDS.get(kind, kind)
    if known not in OWNS_PODS:
        reader.add_fault(key, f"{text}: workloads of kind {kind} cannot be scaled{reader.suggestion(kind, OWNS_PODS)}")
        return None
    return WorkloadSelector(namespace=namespace, kind=known, name=name)


def _by_labels(reader: FileReader, entry: dict[str, Any], key: str) -> WorkloadSelector | None:
    found = read_labelled(reader, entry, key, _NAME, "vgpu-shift=day")
    return WorkloadSelector(namespace=found[0], selector=found[1]) if found else None

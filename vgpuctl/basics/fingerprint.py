"""A short text that is the same for equal values in every process."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Set
from typing import Any

LENGTH = 12


def fingerprint(*values: object) -> str:
    """Return a short digest of frozen data. Places in files (`where`) do not count.

    Python's own `hash` differs from process to process, so another replica could not compare it.
    """
    return hashlib.sha256(json.dumps(_plain(values)).encode()).hexdigest()[:LENGTH]


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (each.name for each in dataclasses.fields(value) if each.compare and each.name != "where")
        return [type(value).__name__, *(_plain(getattr(value, name)) for name in fields)]
    if isinstance(value, Mapping):
        return sorted([_plain(key), _plain(each)] for key, each in value.items())
    if isinstance(value, Set):
        return sorted(json.dumps(_plain(each)) for each in value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return repr(value)

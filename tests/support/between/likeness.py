"""Two pictures compared: what they say of the world, not in which order they learned it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from vgpuctl.model.fleet import Fleet

#: What a stream learns only by watching for a while: how long a kubelet has been seen to renew its Lease.
_LEARNED = {"alive_s"}


def differences(seen: Fleet, true: Fleet) -> list[str]:
    """Where the pictures differ, as paths with both values."""
    return list(_differ("fleet", plain(seen), plain(true)))


def plain(value: Any) -> Any:
    """Dataclasses as dictionaries, and sequences of things in an order of their own."""
    if is_dataclass(value):
        names = (each.name for each in fields(value) if each.name not in _LEARNED)
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return sorted((plain(inner) for inner in value), key=repr)
    return value


def _differ(path: str, seen: Any, true: Any) -> Iterator[str]:
    if isinstance(seen, dict) and isinstance(true, dict):
        for key in sorted(seen.keys() | true.keys()):
            yield from _differ(f"{path}.{key}", seen.get(key), true.get(key))
    elif seen != true:
        yield f"{path} is {seen!r:.200}, and not {true!r:.200}"

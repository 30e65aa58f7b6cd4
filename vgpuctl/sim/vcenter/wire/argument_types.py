"""Checks arguments against pyVmomi's metadata. Its deserialiser accepts what a client claims of lists,
enums and types.
"""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.wire.metadata import wire_name
from vgpuctl.sim.vcenter.wire.vmomi import support


class WrongType(ValueError):  # noqa: N818
    """An argument that does not have its declared type."""


def check(name: str, value: Any, declared: Any, flags: int) -> None:
    """Check one argument. The depth is bounded, because a request's nesting is."""
    if issubclass(declared, list):
        _check_list(name, value, declared)
    elif value is None:
        if not flags & support.F_OPTIONAL and declared is not object:
            raise WrongType(f"{name} is missing")
    elif declared is not object and not _is_a(value, declared):
        raise WrongType(f"{name} is not of the type {_name_of(declared)}")
    elif isinstance(value, support.DataObject):
        for info in value._GetPropertyList():
            check(f"{name}.{info.name}", getattr(value, info.name), info.type, info.flags)


def _check_list(name: str, value: Any, declared: Any) -> None:
    if not isinstance(value, list):
        raise WrongType(f"{name} is not a list")
    for item in value:
        check(name, item, declared.Item, 0)


def _is_a(value: Any, declared: Any) -> bool:
    if declared in _RANGES:
        bits = _RANGES[declared]
        return isinstance(value, int) and -(1 << bits) <= value < 1 << bits
    return isinstance(value, declared)


def _name_of(declared: Any) -> str:
    known = getattr(declared, "_wsdlName", None)
    return wire_name(declared) if known else str(declared.__name__)


#: XML Schema: byte, short, int and long have 8, 16, 32 and 64 bits. Python's int has no bound.
_RANGES: dict[Any, int] = {support.byte: 7, support.short: 15, int: 31, support.long: 63}

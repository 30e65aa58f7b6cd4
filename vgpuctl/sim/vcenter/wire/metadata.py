"""Helpers for pyVmomi's type metadata: the type at a property path, and values as their declared types."""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from typing import Any

from vgpuctl.sim.vcenter.wire.vmomi import support

NAMESPACE = "urn:vim25"
#: The version that `about` and vimServiceVersions.xml name. Mixed size needs 8.0 U3.
NEWEST = support.GetVersionFromVersionUri("vim25/8.0.3.0")
_PRIVILEGE = re.compile(r"[A-Z][A-Za-z]+(\.[A-Z][A-Za-z]+)+")
_KEY = re.compile(r"^(\w+)\[(.+)\]$")
_STEP = re.compile(r"[^.\[]+(?:\[[^\]]*\])?")


class UnknownPath(KeyError):  # noqa: N818
    """There is no such property."""


def version_of(soap_action: str) -> Any:
    """Return the client's API version. An unknown or newer version is answered as the newest one known here."""
    # Measured: pyVmomi quotes the SOAPAction header, govc does not.
    wanted = soap_action.strip('" ').removeprefix("urn:")
    try:
        return support.GetVersionFromVersionUri(wanted)
    except KeyError:
        return NEWEST


def wire_type(name: str) -> Any:
    return support.GetWsdlType(NAMESPACE, name)


def wire_name(kind: Any) -> str:
    return str(kind._wsdlName)


def steps_of(path: str) -> list[str]:
    """Split a path into steps. A key may contain dots, as in config.extraConfig["a.b"]."""
    return _STEP.findall(path)


def check_path(kind: Any, path: str) -> None:
    """Refuse a path that the type cannot have. Behind a key or an Any, only the value itself can decide."""
    steps = steps_of(path)
    if ".".join(steps) != path or not path:
        raise UnknownPath(path)
    for step in steps:
        # An Any may hold any type, and a subtype may be behind each key.
        if kind is object:
            return
        kind = property_type(kind, step.partition("[")[0])
        if "[" in step:
            return


def property_type(kind: Any, name: str) -> Any:
    return _property(kind, name).type


def property_privilege(kind: Any, path: str) -> str | None:
    """Return the privilege that reading a property needs; most need none."""
    privilege = _property(kind, (steps_of(path) or [path])[0].partition("[")[0]).privId
    return str(privilege) if privilege else None


@cache
def named_privileges() -> frozenset[str]:
    """Return every privilege that pyVmomi's metadata name. They are read as they are, without loading the types."""
    pending: list[Any] = [*support._managedDefMap.values()]
    found = set()
    while pending:
        part = pending.pop()
        if isinstance(part, str) and _PRIVILEGE.fullmatch(part):
            found.add(part)
        elif isinstance(part, tuple | list):
            pending.extend(part)
    return frozenset(found)


def _property(kind: Any, name: str) -> Any:
    try:
        return kind._GetPropertyInfo(name)
    except AttributeError:
        raise UnknownPath(name) from None


def set_properties(value: Any) -> set[str]:
    """Return the names of the properties that a client has set in a data object."""
    given = {info.name: getattr(value, info.name) for info in value._GetPropertyList()}
    return {name for name, one in given.items() if one is not None and not (isinstance(one, list) and not one)}


def walk(value: Any, steps: list[str]) -> tuple[Any, Any]:
    """Follow a path inside a value; return what is there and its declared type."""
    declared: Any = object
    for step in steps:
        keyed = _KEY.match(step)
        name = keyed.group(1) if keyed else step
        if value is None:
            return None, declared
        declared = property_type(type(value), name)
        value = getattr(value, name)
        if keyed:
            value, declared = _with_key(value, declared, keyed.group(2)), declared.Item
    return value, declared


def typed(value: Any, declared: Any) -> Any:
    """Return a value as its declared type. Inside an Any, pyVmomi names a plain value by its Python type, and govc
    fails.
    """
    if value is None or declared is object:
        return value
    if issubclass(declared, list):
        return declared([typed(item, declared.Item) for item in value])
    if isinstance(value, declared) and type(value) is declared:
        return value
    # Measured: as xsd:int, `hardware.memorySize` overflowed in govc 0.56.
    if issubclass(declared, str | int | float) and not isinstance(value, datetime):
        return declared(value)
    return value


def _with_key(items: Any, declared: Any, key: str) -> Any:
    """Return the item with a key; only items that have keys can be selected by one."""
    if not issubclass(declared, list) or not _has_key(declared.Item):
        raise UnknownPath(key)
    # vSphere API: text keys are quoted in a path.
    wanted = key.strip("\"'")
    return next((item for item in items if str(item.key) == wanted), None)


def _has_key(kind: Any) -> bool:
    try:
        return issubclass(kind, support.DataObject) and bool(kind._GetPropertyInfo("key"))
    except AttributeError:
        return False

"""Puts one partial update in its place: such a filter reports a change of `config.hardware.device[4000]` alone."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

#: vSphere API, PropertyChange.name: `foo.bar`, `foo.arProp["key val"]` or `foo.arProp["key val"].baz`.
#: How deep into an element vCenter goes is inferred, and any depth works (decision 0010).
_STEP = re.compile(r'\.(?P<name>\w+)|\["(?P<key>.*?)"\]|\[(?P<number>-?\d+)\]')
#: vSphere API, PropertyChange.op: an element was removed, or a property because what contains it was.
_GONE = {"remove", "indirectRemove"}


class Step(NamedTuple):
    """One step into an object: to a property by its name, or to an array's element by its key."""

    name: str | None
    key: str | None


def apply(raw: dict[str, Any], change: Any) -> bool:
    """Apply a change to the known properties, stored under the paths we asked for.

    False if the change does not fit; then the object must be fetched whole.
    """
    name = str(change.name)
    whole = name if name in raw else next((path for path in raw if name.startswith((f"{path}.", f"{path}["))), None)
    if whole is None:
        # An empty array is not reported at first, so it may be unknown.
        whole = name.partition("[")[0]
    try:
        raw[whole] = _changed(raw.get(whole), _steps(name.removeprefix(whole)), change)
    except (AttributeError, LookupError, TypeError):
        # Decision 0010: a path that finds no place is not guessed at.
        return False
    return True


def _steps(inside: str) -> list[Step]:
    found = list(_STEP.finditer(inside))
    if "".join(step[0] for step in found) != inside:
        raise LookupError(inside)
    return [Step(step["name"], step["key"] or step["number"]) for step in found]


def _changed(value: Any, steps: list[Step], change: Any) -> Any:
    """Return `value` after the change at the end of these steps."""
    if not steps:
        return None if change.op in _GONE else change.val
    (name, key), *rest = steps
    if name is not None:
        setattr(value, name, _changed(getattr(value, name), rest, change))
        return value
    elements = {str(element.key): element for element in value or ()}
    elements[str(key)] = _changed(elements[str(key)] if rest else None, rest, change)
    return [element for element in elements.values() if element is not None]

"""One change put where it belongs: a filter for partial updates tells of `config.hardware.device[4000]` alone."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_STEP = re.compile(r'\.(?P<name>\w+)|\["(?P<key>.*?)"\]|\[(?P<number>-?\d+)\]')
_GONE = {"remove", "indirectRemove"}


class Step(NamedTuple):
    """Into a part by its name, or into an array to the element with that key."""

    name: str | None
    key: str | None


def take(raw: dict[str, Any], change: Any) -> bool:
    """Into what is known of an object, by the paths that were asked for; False where it finds no place there, so that
    the object must be asked for as a whole."""
    name = str(change.name)
    whole = name if name in raw else next((path for path in raw if name.startswith((f"{path}.", f"{path}["))), None)
    if whole is None:
        # An array may have been empty, and so not been told of.
        whole = name.partition("[")[0]
    try:
        raw[whole] = _after(raw.get(whole), _steps(name.removeprefix(whole)), change)
    except (AttributeError, LookupError, TypeError):
        return False
    return True


def _steps(inside: str) -> list[Step]:
    found = list(_STEP.finditer(inside))
    if "".join(step[0] for step in found) != inside:
        raise LookupError(inside)
    return [Step(step["name"], step["key"] or step["number"]) for step in found]


def _after(value: Any, steps: list[Step], change: Any) -> Any:
    """What `value` becomes by a change that is these steps inside it."""
    if not steps:
        return None if change.op in _GONE else change.val
    (name, key), *rest = steps
    if name is not None:
        setattr(value, name, _after(getattr(value, name), rest, change))
        return value
    elements = {str(element.key): element for element in value or ()}
    elements[str(key)] = _after(elements[str(key)] if rest else None, rest, change)
    return [element for element in elements.values() if element is not None]

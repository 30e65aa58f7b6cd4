"""Another picture with a few things changed: planning draws one for each step that it thinks through."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

Picture = TypeVar("Picture")


def changed(picture: Picture, **changes: Any) -> Picture:
    """As dataclasses.replace, in a fraction of its time: for dataclasses without slots that check nothing when they are
    made. What they cached does not come along."""
    kind: Any = type(picture)
    copy: Picture = object.__new__(kind)
    inside = copy.__dict__
    inside.update(picture.__dict__)
    inside.update(changes)
    names = _names(kind)
    if len(inside) > len(names):
        if unknown := changes.keys() - names:
            raise TypeError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
        for cached in inside.keys() - names:
            del inside[cached]
    return copy


@cache
def _names(kind: Any) -> frozenset[str]:
    return frozenset(each.name for each in fields(kind))

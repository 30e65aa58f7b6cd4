"""What was made of a server's answer is of the types that it declares; else the field is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.basics.typed import checked


class Word(StrEnum):
    ONE = "one"


class Pair(NamedTuple):
    left: str
    right: int


@dataclass(frozen=True)
class Inner:
    size: float = 1.0


@dataclass(frozen=True)
class Outer:
    name: str = "a"
    count: int = 1
    when: str | None = None
    either: tuple[str, ...] | Inner = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    pairs: tuple[tuple[str, int], ...] = ()
    words: frozenset[Word] = frozenset()
    inner: Inner | None = None
    pair: Pair | None = None
    anything: Any = None


SOUND: list[dict[str, Any]] = [
    {},
    {"when": "now", "inner": Inner(2), "pair": Pair("a", 1), "anything": [7]},
    {"labels": {"a": "b"}, "pairs": (("a", 1),), "words": frozenset({Word.ONE})},
    {"either": Inner()},
    {"either": ("a",)},
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": None}, "name has a wrong type (NoneType)"),
    ({"name": ["a"]}, "name has a wrong type (list)"),
    ({"count": "1"}, "count has a wrong type (str)"),
    ({"when": 7}, "when has a wrong type (int)"),
    ({"either": (7,)}, "either has a wrong type (tuple)"),
    ({"labels": ["a"]}, "labels has a wrong type (list)"),
    ({"labels": {"a": None}}, "labels has a wrong type (NoneType)"),
    ({"labels": {7: "a"}}, "labels has a wrong type (int)"),
    ({"pairs": (("a",),)}, "pairs has a wrong type (tuple)"),
    ({"pairs": (("a", "b"),)}, "pairs has a wrong type (str)"),
    ({"words": frozenset({"two"})}, "words has a wrong type (str)"),
    ({"words": (Word.ONE,)}, "words has a wrong type (tuple)"),
    ({"inner": Inner("big")}, "size has a wrong type (str)"),  # type: ignore[arg-type]
    ({"inner": {}}, "inner has a wrong type (dict)"),
    ({"pair": Pair("a", "b")}, "right has a wrong type (str)"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("given", SOUND, ids=str)
def test_what_is_as_declared_is_returned(given: dict[str, Any]) -> None:
    made = Outer(**given)
    assert checked(made) is made


@pytest.mark.parametrize(("given", "why"), WRONG, ids=[why for _, why in WRONG])
def test_a_value_of_a_wrong_type_is_named_by_its_field(given: dict[str, Any], why: str) -> None:
    with pytest.raises(UnreadableError) as error:
        checked(Outer(**given))
    assert str(error.value) == why


@pytest.mark.parametrize("made", ["a", ("a", True), ("a", None), None, 7])
def test_plain_names_and_pairs_pass(made: Any) -> None:
    assert checked(made) == made


@pytest.mark.parametrize("made", [("a", ["b"]), ({}, "a")])
def test_a_pair_of_anything_else_does_not(made: Any) -> None:
    with pytest.raises(UnreadableError, match="one of its names has a wrong type"):
        checked(made)

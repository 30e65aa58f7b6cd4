"""Faults on demand: which calls go wrong, when and how. It knows calls by name; the servers carry the effects out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import count

VCENTER, KUBERNETES = "vcenter", "kubernetes"
ANY = "*"


class How(StrEnum):
    """What happens to a call that is met."""

    FAIL = "fail"
    TASK_FAILS = "task-fails"
    TASK_HANGS = "task-hangs"
    HANG = "hang"
    LOSE_REPLY = "lose-reply"
    CUT = "cut"
    END_SESSIONS = "end-sessions"
    PERSON = "person"
    DOWN = "down"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """`what`: the fault's or status' name, or what the person does. `seconds`: how long it hangs, or asks to wait."""

    how: How
    what: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Calls of `method` on `on` are met: each of them, or the n-th, every n-th, or each with a chance."""

    server: str
    effect: Effect
    method: str = ANY
    on: str = ANY
    nth: int | None = None
    every: int | None = None
    chance: float | None = None
    seed: int = 1
    times: int | None = None

    def concerns(self, server: str, method: str, names: tuple[str, ...]) -> bool:
        if server != self.server or self.method not in (ANY, method):
            return False
        return self.on == ANY or any(fnmatchcase(name, self.on) for name in names)


@dataclass(slots=True)
class StandingFault:
    """A rule in force: how many calls it concerned, and how many of them it met."""

    id: str
    rule: Rule
    concerned: int = 0
    met: int = 0
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.rule.seed)  # noqa: S311  # the same seed meets the same calls

    @property
    def spent(self) -> bool:
        once = self.rule.nth is not None and self.concerned >= self.rule.nth
        return once or (self.rule.times is not None and self.met >= self.rule.times)

    def meets(self) -> bool:
        """One more call that it concerns: is it met?"""
        if self.spent:
            return False
        self.concerned += 1
        met = self._its_turn()
        self.met += met
        return met

    def _its_turn(self) -> bool:
        rule = self.rule
        if rule.nth is not None:
            return self.concerned == rule.nth
        if rule.every is not None:
            return self.concerned % rule.every == 0
        return rule.chance is None or self._chance.random() < rule.chance


class Faults:
    """All rules in force, oldest first. Each counts the calls that it concerns; the first that meets one acts."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._standing: dict[str, StandingFault] = {}

    def __iter__(self) -> Iterator[StandingFault]:
        return iter(tuple(self._standing.values()))

    def add(self, rule: Rule) -> StandingFault:
        standing = StandingFault(str(next(self._numbers)), rule)
        self._standing[standing.id] = standing
        return standing

    def clear(self, id: str) -> bool:
        return self._standing.pop(id, None) is not None

    def meet(self, server: str, method: str, names: tuple[str, ...]) -> Effect | None:
        effects = [
            standing.rule.effect
            for standing in self._standing.values()
            if standing.rule.concerns(server, method, names) and standing.meets()
        ]
        return effects[0] if effects else None

    def down(self, server: str) -> bool:
        return any(each.rule.server == server and each.rule.effect.how is How.DOWN for each in self._standing.values())

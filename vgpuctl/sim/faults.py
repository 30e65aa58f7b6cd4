"""Faults on demand: which calls go wrong, when and how.

This module knows calls by name only. The servers carry the effects out.
"""

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
    """What happens to a call that a fault meets."""

    FAIL = "fail"
    TASK_FAILS = "task-fails"
    TASK_HANGS = "task-hangs"
    HANG = "hang"
    LOSE_REPLY = "lose-reply"
    CUT = "cut"
    END_SESSIONS = "end-sessions"
    PERSON = "person"
    DOWN = "down"

    @property
    def needs_time(self) -> bool:
        """True if the effect lasts for a time that must be given."""
        return self in (How.HANG, How.DOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """`what`: the fault or status that is returned, or what the person does. `seconds`: how long the call hangs, or how
    long the client is asked to wait.
    """

    how: How
    what: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Selects calls of `method` on objects named `on`: each one, the n-th, every n-th, or each with a probability."""

    server: str
    effect: Effect
    method: str = ANY
    on: str = ANY
    nth: int | None = None
    every: int | None = None
    chance: float | None = None
    seed: int = 1
    times: int | None = None

    def matches(self, server: str, method: str, names: tuple[str, ...]) -> bool:
        # Decision 0006: calls are known by name alone, so a rule needs no knowledge of SOAP or REST.
        if server != self.server or self.method not in (ANY, method):
            return False
        return self.on == ANY or any(fnmatchcase(name, self.on) for name in names)


@dataclass(slots=True)
class ActiveFault:
    """A rule in force. `concerned`: how many calls it matched. `met`: how many of them it made go wrong."""

    id: str
    rule: Rule
    concerned: int = 0
    met: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.rule.seed)  # noqa: S311  # the same seed meets the same calls

    @property
    def spent(self) -> bool:
        once = self.rule.nth is not None and self.concerned >= self.rule.nth
        return once or (self.rule.times is not None and self.met >= self.rule.times)

    def takes_effect(self) -> bool:
        """Count one more matching call; return True if the fault meets it."""
        if self.spent:
            return False
        self.concerned += 1
        met = self._is_due()
        self.met += met
        return met

    def _is_due(self) -> bool:
        rule = self.rule
        if rule.nth is not None:
            return self.concerned == rule.nth
        if rule.every is not None:
            return self.concerned % rule.every == 0
        return rule.chance is None or self._random.random() < rule.chance


class Faults:
    """All active faults, oldest first. Each counts the calls that it matches; the first that meets a call decides its
    effect.
    """

    def __init__(self) -> None:
        self._ids = count(1)
        self._active: dict[str, ActiveFault] = {}

    def __iter__(self) -> Iterator[ActiveFault]:
        return iter(tuple(self._active.values()))

    def add(self, rule: Rule) -> ActiveFault:
        fault = ActiveFault(str(next(self._ids)), rule)
        self._active[fault.id] = fault
        return fault

    def clear(self, id: str) -> bool:
        return self._active.pop(id, None) is not None

    def effect_on(self, server: str, method: str, names: tuple[str, ...]) -> Effect | None:
        effects = [
            fault.rule.effect
            for fault in self._active.values()
            if fault.rule.matches(server, method, names) and fault.takes_effect()
        ]
        return effects[0] if effects else None

    def down(self, server: str) -> bool:
        return any(each.rule.server == server and each.rule.effect.how is How.DOWN for each in self._active.values())

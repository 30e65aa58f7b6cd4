"""What the engine remembers between two looks: which requests are out, and since when a step is due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

#: In place of a host, of what concerns all of them: the workloads.
EVERYWHERE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request that was sent. `answered_s` is None while it is in flight; `spends`: its budgets' versions then.

    `after_s`: for how long the server that refused it asks to wait. `patience`: how often a refusal of this kind is
    tried again, although it may pass.
    """

    sent_s: float
    answered_s: float | None = None
    task: str | None = None
    error: str = ""
    passing: bool = False
    after_s: float = 0.0
    patience: int | None = None
    tries: int = 1
    spends: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Frozen as everything that decisions are made on: a new one after every look."""

    attempts: Mapping[str, Attempt] = field(default_factory=dict)
    due_since: Mapping[str, float] = field(default_factory=dict)
    going_back: Mapping[str, str] = field(default_factory=dict)
    gave_up: Mapping[str, str] = field(default_factory=dict)
    held_back: Mapping[str, str] = field(default_factory=dict)
    booting: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    stopping: bool = False

    def answered(self, key: str, now: float, **outcome: object) -> Memory:
        attempt = self.attempts.get(key)
        if attempt is None:
            return self
        return replace(self, attempts={**self.attempts, key: replace(attempt, answered_s=now, **outcome)})  # type: ignore[arg-type]

    def due(self, names: Iterable[str], now: float) -> Memory:
        """The steps that are due now, and since when each has been."""
        return replace(self, due_since={name: self.due_since.get(name, now) for name in names})

    def turn_back(self, host: str, why: str, workers: Iterable[str]) -> Memory:
        """From here on this host's wish is the former one; what was tried for the old wish is forgotten."""
        return replace(self._forget(workers), going_back={**self.going_back, host: why})

    def boot(self, workers: Iterable[str]) -> Memory:
        """These could not be resumed; what was tried for that is forgotten."""
        names = frozenset(workers)
        return replace(self._forget(names), booting=self.booting | names)

    def leave(self, steps: Iterable[str]) -> Memory:
        """These are not waited for any more."""
        return replace(self, left=self.left.union(steps))

    def give_up(self, host: str, why: str) -> Memory:
        return replace(self, gave_up={**self.gave_up, host: why})

    def hold_back(self, hosts: Iterable[str], why: str) -> Memory:
        """These are not begun any more."""
        return replace(self, held_back={**dict.fromkeys(hosts, why), **self.held_back})

    def begun(self) -> set[str]:
        """The workers that something was asked for."""
        return {_worker_of(key) for key in self.attempts}

    def _forget(self, workers: Iterable[str]) -> Memory:
        """All but what is out, and what may still take a worker down: guests and vCenter cannot be asked not to."""
        names = set(workers)
        kept = {
            key: attempt
            for key, attempt in self.attempts.items()
            if attempt.answered_s is None
            or _worker_of(key) not in names
            or (key.startswith(("ShutDown/", "Suspend/")) and (attempt.passing or not attempt.error))
        }
        due = {name: since for name, since in self.due_since.items() if _worker_of(name) not in names}
        return replace(self, attempts=kept, due_since=due)

    def by_step(self) -> dict[str, list[Attempt]]:
        """The attempts of each step, by its name."""
        found: dict[str, list[Attempt]] = {}
        for key, attempt in self.attempts.items():
            found.setdefault(key.rpartition("/")[0], []).append(attempt)
        return found

    def out(self) -> dict[str, set[str]]:
        """For each worker the steps of which a request is still without an answer."""
        found: dict[str, set[str]] = {}
        for key, attempt in self.attempts.items():
            if attempt.answered_s is None:
                found.setdefault(_worker_of(key), set()).add(key.rpartition("/")[0])
        return found

    @property
    def in_flight(self) -> bool:
        return any(attempt.answered_s is None for attempt in self.attempts.values())


def _worker_of(key: str) -> str:
    """Of a step's name, or of the key of one of its requests. Workloads are never asked for by one of these names."""
    return key.split("/")[1]

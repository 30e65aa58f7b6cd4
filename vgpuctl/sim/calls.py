"""Counts the clients' calls by server and method, and returns what must go wrong with each call.

The world's own actions are not calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from vgpuctl.sim.faults import Effect, Faults, How


class Calls:
    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self.faults = Faults()
        self.act_as_person: Callable[[str], None] = _no_person

    def count(self, server: str, method: str, *names: str) -> Effect | None:
        """Count one call on an object of these names; return what must go wrong with it, if anything.

        A call to a server that is down is not counted: over a connection that was open before, it reaches no server.
        """
        effect = self.faults.effect_on(server, method, names)
        if effect and effect.how is How.DOWN:
            return effect
        self._counts.setdefault(server, Counter())[method] += 1
        if effect and effect.how is How.PERSON:
            self.act_as_person(effect.what)
            return None
        return effect

    def as_dict(self) -> dict[str, dict[str, int]]:
        return {server: dict(sorted(methods.items())) for server, methods in sorted(self._counts.items())}

    def reset(self) -> None:
        self._counts.clear()


def _no_person(act: str) -> None:
    raise RuntimeError(f"no person is there to {act}")

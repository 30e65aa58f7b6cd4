"""What the clients asked for: counted by server and method, never the world's own doings; and what is to go wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from vgpuctl.sim.faults import Effect, Faults, How


class Calls:
    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self.faults = Faults()
        self.person: Callable[[str], None] = _nobody

    def count(self, server: str, method: str, *names: str) -> Effect | None:
        """One call on an object of these names; the answer says what is to go wrong with it.

        What a server never saw, for it was down, is no call: the words of a connection left over reach nobody.
        """
        effect = self.faults.meet(server, method, names)
        if effect and effect.how is How.DOWN:
            return effect
        self._counts.setdefault(server, Counter())[method] += 1
        if effect and effect.how is How.PERSON:
            self.person(effect.what)
            return None
        return effect

    def as_dict(self) -> dict[str, dict[str, int]]:
        return {server: dict(sorted(methods.items())) for server, methods in sorted(self._counts.items())}

    def reset(self) -> None:
        self._counts.clear()


def _nobody(act: str) -> None:
    raise RuntimeError(f"there is nobody who could {act}")

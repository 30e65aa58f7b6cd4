"""How long to wait before something that failed is tried again."""

from __future__ import annotations

FIRST_S = 1.0
LONGEST_S = 30.0
#: What worked for so long before it failed again begins with the first pause.
LASTED_S = 60.0


def pause_s(failures: int) -> float:
    """1, 2, 4 … 30 s. `failures`: in a row."""
    return min(FIRST_S * (1 << min(failures - 1, 10)), LONGEST_S)


class Pauses:
    """The pauses of one thing that is tried again and again."""

    def __init__(self) -> None:
        self._failures = 0

    def after_failure(self, worked_s: float, asked_s: float = 0.0) -> float:
        """`worked_s`: for how long it had worked. `asked_s`: the pause that a server asked for at least."""
        self._failures = 1 if worked_s >= LASTED_S else self._failures + 1
        return max(pause_s(self._failures), asked_s)

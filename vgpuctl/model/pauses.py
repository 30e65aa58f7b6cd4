"""How long to wait before a failed attempt is repeated."""

from __future__ import annotations

FIRST_S = 1.0
LONGEST_S = 30.0
#: What worked for so long before it failed again begins with the first pause.
LASTED_S = 60.0


def pause_s(failures: int) -> float:
    """Return the pause after so many failures in a row: 1, 2, 4 … 30 s."""
    return min(FIRST_S * (1 << min(failures - 1, 10)), LONGEST_S)


class Pauses:
    """The pauses of one thing that is tried again and again."""

    def __init__(self) -> None:
        self._failures = 0

    def after_failure(self, worked_s: float, asked_s: float = 0.0) -> float:
        """Return the pause after a failure.

        `worked_s`: how long it had worked before. `asked_s`: the least pause that a server asked for.
        """
        self._failures = 1 if worked_s >= LASTED_S else self._failures + 1
        return max(pause_s(self._failures), asked_s)

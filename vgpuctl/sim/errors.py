"""The error that the simulators report to the person who runs them."""

from __future__ import annotations


class SimError(Exception):
    """An error for a person to read. `hint` says what to do next."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

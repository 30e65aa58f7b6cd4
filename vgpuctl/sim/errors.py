"""The one error of the simulators that reaches whoever runs them."""

from __future__ import annotations


class SimError(Exception):
    """Something a person should read; `hint` is what they can do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

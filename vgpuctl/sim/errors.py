"""The one error of the simulators that reaches whoever runs them."""

from __future__ import annotations


class SimError(Exception):
    """Something a person should read."""

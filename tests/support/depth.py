"""Which cases only the long form of a test takes."""

from __future__ import annotations

from typing import Any

import pytest


def only_long(*fault: Any) -> Any:
    """In virtual time all kinds of faults are rehearsed in any case."""
    return pytest.param(*fault, marks=pytest.mark.long)

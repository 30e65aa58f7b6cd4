"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.lab import Lab

settings.register_profile(
    "house", deadline=None, derandomize=True, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")


@pytest.fixture
def make_lab(tmp_path: Path) -> Iterator[Callable[..., Lab]]:
    """Labs that are ended after the test, whatever happened in it."""
    labs: list[Lab] = []

    def make(*options: str) -> Lab:
        lab = Lab.up(tmp_path / f"lab-{len(labs)}", *(options or ("--instant",)))
        labs.append(lab)
        return lab

    yield make
    for lab in labs:
        lab.down()


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    """One instant lab with the default inventory, as it begins."""
    return make_lab()

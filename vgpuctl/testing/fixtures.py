"""Fixtures for pytest: `pytest_plugins = ["vgpuctl.testing.fixtures"]` in conftest.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vgpuctl.testing.estate import Estate

MakeEstate = Callable[..., Estate]


@pytest.fixture
def make_vgpu_estate(tmp_path: Path) -> Iterator[MakeEstate]:
    """Return a function that makes simulated estates, each in its own folder:
    `make_vgpu_estate("two-cards-performance")`.

    They are closed after the test.
    """
    made: list[Estate] = []

    def make(scenario: str | None = None, *, instant: bool = True) -> Estate:
        made.append(Estate(tmp_path / f"estate-{len(made) + 1}", scenario, instant=instant))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def vgpu_estate(make_vgpu_estate: MakeEstate, monkeypatch: pytest.MonkeyPatch) -> Estate:
    """A host with one card, four day workers and a night worker. The test's environment leads only there."""
    estate = make_vgpu_estate()
    wanted = estate.environment()
    for name in os.environ.keys() - wanted.keys():
        monkeypatch.delenv(name)
    for name, value in estate.env.items():
        monkeypatch.setenv(name, value)
    return estate

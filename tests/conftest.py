"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

# Before they are imported: what fails in them then shows its values, as in a test.
pytest.register_assert_rewrite("tests.support")

from tests.support.lab import Lab  # noqa: E402
from tests.support.labs import Labs  # noqa: E402

pytest_plugins = ["vgpuctl.testing.fixtures"]

settings.register_profile(
    "house", deadline=None, derandomize=True, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)
#: make soak: the same properties with examples that nobody has seen, and how to see a failing one again.
settings.register_profile("soak", settings.get_profile("house"), derandomize=False, max_examples=300, print_blob=True)
settings.load_profile("house")


@pytest.fixture(scope="session")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    labs = Labs(tmp_path_factory.mktemp("labs"))
    yield labs
    labs.down()


@pytest.fixture
def make_lab(labs: Labs) -> Iterator[Callable[..., Lab]]:
    """Labs for one test. After it they begin again for another, or end, whatever happened in it."""
    taken: list[tuple[Lab, tuple[str, ...]]] = []

    def make(*options: str) -> Lab:
        wanted = options or ("--instant",)
        taken.append((labs.take(*wanted), wanted))
        return taken[-1][0]

    yield make
    for lab, options in taken:
        labs.give_back(lab, *options)


@pytest.fixture(scope="session")
def standing_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One lab by day for all tests that leave the world as it is."""
    lab = Lab.up(tmp_path_factory.mktemp("standing") / "lab", "--instant", "--scenario", "by-day")
    yield lab
    lab.more_env = {}
    lab.down()


@pytest.fixture
def by_day(standing_lab: Lab) -> Lab:
    """The standing lab; after the test it must be as before."""
    standing_lab.more_env = {}
    standing_lab.calls()
    return standing_lab


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    """One instant lab with the default inventory, as it begins."""
    return make_lab()


@pytest.fixture
def day(make_lab: Callable[..., Lab]) -> Lab:
    """An instant lab on an ordinary day, as if it had stood for long: provisioned, the day workers awake."""
    return make_lab("--instant", "--scenario", "by-day")

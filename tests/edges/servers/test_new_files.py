"""New files over a running connection: what they ask for is seen, in the same session, and only if it differs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.fleets import PROFILES
from vgpuctl.basics.names import Names
from vgpuctl.model.errors import PassingError
from vgpuctl.model.profiles import Catalogue, WorkerRule
from vgpuctl.observe.wiring import Connection
from vgpuctl.settings import Flags, settings
from vgpuctl.testing import Estate
from vgpuctl.wire import retries

WITHIN_S = 20.0
BY_NAME = Catalogue(PROFILES, (WorkerRule(profile="v100-4q-4GB", names=Names(("worker-[1-2]",)), where="p.yaml:3"),))
BY_CLUSTER = Catalogue(PROFILES, (WorkerRule(profile="v100-4q-4GB", names=Names(("worker-*",)), cluster="?*"),))


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with Estate(tmp_path_factory.mktemp("new-files") / "estate", "by-day") as estate:
        yield estate


@pytest.fixture
def connection(estate: Estate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Connection]:
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.01)
    estate.reset()
    estate.calls()
    one = Connection(settings(Flags(), {**estate.environment(), "HOME": str(tmp_path)}), BY_NAME)
    one.open().follow()
    yield one
    one.close()


def until(done: Callable[[], Any]) -> None:
    ends_s = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < ends_s
        time.sleep(0.01)


def test_workers_of_another_catalogue_are_followed_in_the_same_session(estate: Estate, connection: Connection) -> None:
    """Its long call, which may wait for a minute, is ended. The views of the former files are given back."""
    assert set(connection.fleet().workers) == {"worker-1", "worker-2"}
    began_s = time.monotonic()
    connection.observe(BY_CLUSTER, scales=False)
    assert time.monotonic() - began_s < 10
    assert set(connection.fleet().workers) == {f"worker-{number}" for number in range(1, 6)}
    assert connection.fleet().unheard() == ""
    calls = estate.calls()["vcenter"]
    assert {name: calls[name] for name in ("Login", "CreateContainerView", "DestroyView")} == {
        "Login": 1,
        "CreateContainerView": 2,
        "DestroyView": 1,
    }
    estate.person("power-off worker-4")
    until(lambda: not connection.fleet().worker("worker-4").on)


def test_files_that_ask_for_the_same_ask_the_servers_nothing(estate: Estate, connection: Connection) -> None:
    estate.calls()
    connection.observe(replace(BY_NAME), scales=False)
    assert set(estate.calls().get("vcenter", {})) <= {"WaitForUpdatesEx"}


def test_workloads_are_followed_once_a_timetable_scales_them(estate: Estate, connection: Connection) -> None:
    assert connection.fleet().workloads == {}
    estate.calls()
    for _ in range(2):
        connection.observe(BY_NAME, scales=True)
    assert "default/deployment/notebooks" in set(connection.fleet().workloads)
    kinds = ("deployments", "statefulsets", "horizontalpodautoscalers")

    def asked() -> list[int]:
        """Return the calls for these kinds. The watches of the others may begin at any time."""
        calls = estate.calls(reset=False).get("kubernetes", {})
        return [calls.get(f"GET {kind}", 0) for kind in kinds]

    # One list and one watch each.
    until(lambda: asked() == [2, 2, 2])


def test_a_vcenter_that_fails_meanwhile_is_reported_and_asked_again(estate: Estate, connection: Connection) -> None:
    estate.fault("CreateContainerView", "cut")
    with pytest.raises(PassingError, match="vCenter cannot be heard: "):
        connection.observe(BY_CLUSTER, scales=False)
    estate.clear_faults()
    until(lambda: not connection.silent_streams())
    connection.observe(BY_CLUSTER, scales=False)
    assert len(connection.fleet().workers) == 5
    assert estate.calls()["vcenter"]["Login"] == 1

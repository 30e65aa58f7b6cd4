"""govc, unmodified, at the simulated vCenter."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.fleets import QUARTER
from tests.support.peers.processes import program
from tests.support.vcenter import connect, content_of
from vgpuctl.sim.inventory import Durations, default_inventory
from vgpuctl.testing import Estate


@pytest.fixture(scope="module")
def standing_estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    folder = tmp_path_factory.mktemp("govc") / "estate"
    with Estate(folder, default_inventory(cards=2), durations=Durations.instant()) as estate:
        yield estate


@pytest.fixture
def estate(standing_estate: Estate) -> Estate:
    standing_estate.reset()
    return standing_estate


@pytest.fixture
def govc(estate: Estate, tmp_path: Path) -> Callable[..., str]:
    home = {"PATH": os.environ["PATH"], "GOVMOMI_HOME": str(tmp_path), "HOME": str(tmp_path)}
    environment = estate.environment() | home

    def run(*arguments: str, fails: bool = False) -> str:
        command = [str(program("govc")), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_govc_finds_its_way_round(govc: Callable[..., str]) -> None:
    assert "VirtualCenter" in govc("about")
    assert govc("ls").split() == ["/dc/vm", "/dc/host", "/dc/datastore", "/dc/network"]
    assert "/dc/host/gpu/esx-1" in govc("find", "/").splitlines()
    assert len(govc("find", "/", "-type", "m").splitlines()) == 11
    assert govc("find", "/", "-type", "h").split() == ["/dc/host/gpu/esx-1"]
    assert govc("vm.info", "worker-1", "worker-2").count("Power state:  poweredOff") == 2
    assert govc("vm.info", "-e", "worker-*").count("Name: ") == 10
    assert json.loads(govc("vm.info", "-json", "worker-1"))["virtualMachines"][0]["config"]["hardware"]["numCPU"] == 8
    assert "0000:3c:00.0" in govc("gpu.host.info", "-host", "esx-1")
    assert QUARTER in govc("gpu.host.profile.ls", "-host", "esx-1")


def test_govc_collects_properties(govc: Callable[..., str]) -> None:
    assert govc("object.collect", "-s", "vm/infra-1", "runtime.powerState").strip() == "poweredOn"
    devices = json.loads(govc("object.collect", "-json", "vm/worker-1", "config.hardware.device"))
    assert "_value" in devices[0]["val"]
    assert govc("object.collect", "-s", "host/gpu/esx-1", "hardware.memorySize").strip() == str(4096 << 30)
    assert "worker-5" in govc("object.collect", "-type", "m", "/", "name", "runtime.host")
    assert "does not exist" in govc("object.collect", "vm/worker-1", "bogus", fails=True)


def test_govc_moves_vms_between_a_shared_card_and_a_whole_one(govc: Callable[..., str]) -> None:
    govc("gpu.vm.add", "-vm", "worker-1", "-profile", QUARTER)
    assert QUARTER in govc("gpu.vm.info", "-vm", "worker-1")
    assert "sched.mem.min" in govc("vm.power", "-on", "worker-1", fails=True)
    govc("vm.change", "-vm", "worker-1", "-memory-pin")
    govc("vm.power", "-on", "worker-1", "worker-2")
    assert govc("object.collect", "-s", "vm/worker-1", "runtime.powerState").strip() == "poweredOn"
    govc("vm.power", "-suspend", "worker-1")
    assert "(Suspended)" in govc("gpu.vm.remove", "-vm", "worker-1", fails=True)
    govc("vm.power", "-off", "worker-1")
    govc("gpu.vm.remove", "-vm", "worker-1")
    assert QUARTER not in govc("gpu.vm.info", "-vm", "worker-1")
    assert "Invalid backing" in govc("gpu.vm.add", "-vm", "worker-1", "-profile", "grid_v100-3q", fails=True)
    govc("vm.power", "-s", "worker-2")


def test_govc_destroys_vms_and_nothing_else(govc: Callable[..., str]) -> None:
    govc("vm.destroy", "worker-2")
    assert "/dc/vm/worker-2" not in govc("ls", "vm").split()
    assert "not supported" in govc("object.destroy", "host/gpu/esx-1", fails=True)
    assert "not supported" in govc("vm.clone", "-vm", "worker-1", "-on=false", "copy", fails=True)


def test_govc_ends_sessions_and_shows_roles(govc: Callable[..., str], estate: Estate) -> None:
    other = connect(estate)
    key = content_of(other).sessionManager.currentSession.key
    assert key in govc("session.ls")
    govc("session.rm", key)
    assert key not in govc("session.ls")
    assert "could not be found" in govc("session.rm", key, fails=True)
    other._stub.DropConnections()
    assert govc("role.ls").split()[0] == "Admin"
    assert [line.split()[0] for line in govc("permissions.ls").splitlines()] == ["Role", "Admin", "ReadOnly"]

"""What the control of the simulators refuses, and that a person's mistake disturbs no client. No server is started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.support.day import at_work
from tests.support.kubernetes_asked import Asked
from tests.support.kubernetes_cluster import BEGAN
from vgpuctl.sim.control.control_api import ControlApi
from vgpuctl.sim.control.fault_rules import InvalidRequest
from vgpuctl.sim.driver import Driver
from vgpuctl.sim.inventory import Durations, Licences, default_inventory
from vgpuctl.sim.people import NotDone
from vgpuctl.sim.world import World


class WithoutServers:
    """A world in this thread has no ports to close."""

    def apply_down_faults(self) -> None:
        return

    def reset(self) -> None:
        raise AssertionError("there is nothing to reset")


@pytest.fixture
def world() -> World:
    return World(began=BEGAN)


def controlled(world: World, do: Callable[[ControlApi], Any]) -> Any:
    async def within_a_loop() -> Any:
        return do(ControlApi(world, Driver(world.clock, frozen=True), WithoutServers()))

    return asyncio.run(within_a_loop())


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("heartbeat_s", 0, "heartbeat must be from 1 to 2678400, not 0"),
        ("heartbeat_s", 1e-9, "heartbeat must be from 1"),
        ("suspend_s", -1, "suspend must be from 0"),
        ("suspend_s", None, "suspend must be from 0"),
        ("suspend_s", float("nan"), "suspend must be from 0"),
    ],
)
def test_durations_with_which_time_would_not_pass_are_refused(
    world: World, name: str, value: float | None, why: str
) -> None:
    before = controlled(world, lambda control: control.durations({}))
    with pytest.raises(InvalidRequest, match=why):
        controlled(world, lambda control: control.set_durations({name: value}))
    assert controlled(world, lambda control: control.durations({})) == before


def test_no_world_begins_without_time_between_heartbeats() -> None:
    with pytest.raises(ValueError, match="heartbeat_s must be at least 1, not 0"):
        Durations(heartbeat_s=0)


def by_person(act: str) -> dict[str, Any]:
    return {"target": "GET nodes", "how": "person", "what": act, "nth": 1}


@pytest.mark.parametrize(
    ("act", "why"),
    [
        ("cordon worker-99", "there is no node worker-99; did you mean worker-"),
        ("label worker-99 a=b", "there is no node worker-99"),
        ("delete-node stranger", "there is no node stranger"),
        ("suspend worker-99", "there is no VM worker-99"),
        ("crash esx-9", "there is no host esx-9; did you mean esx-1"),
        ("move worker-1", "move needs a VM and a host"),
        ("move worker-1 esx-9", "there is no host esx-9"),
        ("move worker-99 esx-1", "there is no VM worker-99"),
        ("label worker-1 team", "label needs key=value, or key- to remove it, not team"),
    ],
)
def test_a_fault_by_a_person_who_cannot_act_is_refused(world: World, act: str, why: str) -> None:
    with pytest.raises(NotDone, match=why):
        controlled(world, lambda control: control.add_fault(by_person(act)))
    with pytest.raises(NotDone, match=why):
        controlled(world, lambda control: control.send_person({"act": act, "in": 5}))
    assert controlled(world, lambda control: control.faults({})) == {"faults": []}


@pytest.mark.parametrize("act", ["delete-pod nobody", "cordon worker-1", "label worker-1 a=!", "shut-down worker-1"])
def test_what_a_person_cannot_do_by_then_disturbs_no_call(
    world: World, act: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The worker's node is deleted meanwhile, and its VM is off."""
    controlled(world, lambda control: control.add_fault(by_person(act)))
    world.people.act("delete-node worker-1")
    code, body = Asked(world).send("GET", "/api/v1/nodes")
    assert (code, body["kind"]) == (200, "NodeList")
    assert [fault.met for fault in world.calls.faults] == [1]
    assert f"A person could not {act}: " in capsys.readouterr().out


def test_a_host_is_lost_and_found_by_the_control(world: World) -> None:
    def set_host(**changes: Any) -> Any:
        return controlled(world, lambda control: control.set_host({"name": "esx-1", **changes}))

    assert (set_host(act="crash").items()) >= {"name": "esx-1", "connection": "notResponding"}.items()
    assert set_host(act="disconnect")["connection"] == "disconnected"
    assert set_host(act="connect")["connection"] == "connected"
    with pytest.raises(NotDone, match="not allowed in the current state"):
        set_host(act="connect")
    assert (set_host(build="1")["build"], set_host(vgpu_manager="2")["build"]) == ("1", "1")
    with pytest.raises(InvalidRequest, match="a host can crash, disconnect, not-responding, connect, not 'melt'"):
        set_host(act="melt")


def test_people_move_vms_and_empty_hosts() -> None:
    world = World(default_inventory(hosts=2), began=BEGAN)
    for act in ("move infra-1 esx-2", "enter-maintenance esx-1"):
        world.people.act(act)
        world.wait(10)
    assert world.estate.vms["infra-1"].host.name == "esx-2"
    assert world.estate.hosts["esx-1"].in_maintenance
    world.people.act("exit-maintenance esx-1")
    world.wait(10)
    world.people.act("evacuate esx-1")
    world.wait(10)
    assert not world.estate.hosts["esx-1"].in_maintenance, "without DRS, VMs that are off stay where they are"


@pytest.mark.parametrize(("seats", "licence"), [(4, "Licensed"), (0, "Unlicensed")])
def test_a_vm_shows_what_a_probe_in_its_guest_would_say(seats: int, licence: str) -> None:
    world = World(at_work(replace(default_inventory(), licences=Licences(seats))), began=BEGAN)
    worker, other = (
        controlled(world, partial(ControlApi.set_vm, request={"name": name})) for name in ("worker-1", "infra-1")
    )
    assert (worker["licence"], "licence" in other) == (licence, False)


def test_what_sets_a_guests_clock_is_changed_and_a_lag_is_made_up_for(world: World) -> None:
    set_vm = partial(controlled, world)
    assert set_vm(lambda control: control.set_vm({"name": "worker-1", "clock": "never"}))["clock"] == "never"
    kubelet = world.kubernetes.kubelets["worker-1"]
    world.kubernetes.boot("worker-1", 1)
    world.wait(10)
    world.kubernetes.freeze("worker-1")
    world.wait(3600)
    world.kubernetes.thaw("worker-1")
    world.wait(600)
    assert kubelet._clock.lag_s == 3600
    set_vm(lambda control: control.set_vm({"name": "worker-1", "clock": "tools"}))
    world.wait(2)
    assert kubelet._clock.lag_s == 0


def test_a_clock_that_is_not_simulated_or_set_by_nothing_known_is_refused(world: World) -> None:
    with pytest.raises(InvalidRequest, match="set by tools, chrony, never, not 'ntpd'"):
        controlled(world, lambda control: control.set_vm({"name": "worker-1", "clock": "ntpd"}))
    clone = replace(world.estate.vms["worker-1"].spec, name="clone", has_node=False)
    world.estate.add(clone)
    with pytest.raises(InvalidRequest, match="clone has no node"):
        controlled(world, lambda control: control.set_vm({"name": "clone", "clock": "never"}))
    assert "clock" not in controlled(world, lambda control: control.set_vm({"name": "clone"}))

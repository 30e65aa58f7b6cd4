"""What vgpuctl reads of a vCenter besides its stream, on ours and on vcsim."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.peers.processes import until
from tests.support.peers.vcenters import Client, Vcenter, session_at
from vgpuctl.vsphere.graphics import vgpu_types_of
from vgpuctl.vsphere.session import Session


@pytest.fixture
def session(vcenter: Vcenter) -> Iterator[Session]:
    with session_at(vcenter) as session:
        yield session


def test_a_guest_that_shuts_down_says_so_until_it_is_off(vcenter: Vcenter, client: Client) -> None:
    vm = client.vm("worker-1")
    assert client.read(vm, "guest.guestState") in {"notRunning", None}
    client.ok(vm.PowerOn())
    vcenter.holds_not("vcsim", "its guests stay notRunning; that the leaf can be asked is all")
    until(lambda: client.read(vm, "guest.guestState") == "running", what="the guest runs")
    vm.ShutdownGuest()
    assert (client.read(vm, "guest.guestState"), client.power(vm)) == ("shuttingDown", "poweredOn")
    until(lambda: client.power(vm) == "poweredOff", what="the guest is down")
    assert client.read(vm, "guest.guestState") == "notRunning"


def test_a_host_tells_the_frame_and_class_of_its_types(vcenter: Vcenter, session: Session, client: Client) -> None:
    host = client.read(client.vm("worker-1"), "runtime.host")
    told = {each.vgpu: each for each in vgpu_types_of(session, host._moId)}
    if vcenter.name == "vcsim":
        assert told == {}, "it does not know the method, and nothing breaks"
        return
    assert (told["grid_v100-4q"].gib, told["grid_v100-4q"].series) == (4, "q")
    assert (told["grid_v100-16c"].gib, told["grid_v100-16c"].series) == (16, "c")

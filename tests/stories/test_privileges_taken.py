"""Each privilege of vgpuctl's user in vCenter is taken away in turn: the commands do without it, or end and name it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.forked import Command, run
from tests.support.operator import Operator
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate
from vgpuctl.vsphere.rights import PRIVILEGES, Place, Privilege

WITHIN_S = 40
NIGHT = "worker-5"
SWITCH, DRY_RUN = ("switch", "night", "--yes"), ("switch", "night", "--dry-run")
RESTART = ("provision", "worker-1", "--profile", "none", "--yes")
PROVISION = ("provision", "--yes")


class Without(NamedTuple):
    """What happens without a privilege: the words of a command, its exit code and what it says."""

    words: tuple[str, ...]
    code: int = 5
    said: str = ""


def named(privilege: Privilege) -> str:
    return f"{privilege.name} on {privilege.place}"


INTERACT, CONFIG = "VirtualMachine.Interact", "VirtualMachine.Config"
EXPECTED: dict[str, Without] = {
    f"{INTERACT}.PowerOn on {Place.WORKERS}": Without(SWITCH, said=f"{INTERACT}.PowerOn on worker-5. Nothing"),
    f"{INTERACT}.Suspend on {Place.WORKERS}": Without(SWITCH, said=f"{INTERACT}.Suspend on worker-[1-4]. Nothing"),
    f"{INTERACT}.PowerOff on {Place.WORKERS}": Without(RESTART, said=f"{INTERACT}.PowerOff on worker-1. Nothing"),
    f"{CONFIG}.AddRemoveDevice on {Place.WORKERS}": Without(
        PROVISION, said=f"{CONFIG}.AddRemoveDevice on worker-[1-5]"
    ),
    f"{CONFIG}.Resource on {Place.WORKERS}": Without(PROVISION, said=f"{CONFIG}.Resource on worker-[1-5]"),
    f"{CONFIG}.AdvancedConfig on {Place.WORKERS}": Without(PROVISION, said=f"{CONFIG}.AdvancedConfig on worker-[1-5]"),
    f"System.Read on {Place.WORKERS}": Without(SWITCH, said=f"{INTERACT}.Suspend on worker-[1-4]. Nothing"),
    f"System.Read on {Place.HOSTS}": Without(
        SWITCH, 3, "worker-1 is on a host that vCenter does not show to this user"
    ),
    f"System.Read on {Place.DATASTORES}": Without(DRY_RUN, 0, "vCenter does not show the room of"),
}


def test_each_privilege_is_taken_away() -> None:
    assert {named(each) for each in PRIVILEGES} == EXPECTED.keys()


class Story:
    """An estate and its user. In Kubernetes the user may do everything."""

    def __init__(self, estate: Estate) -> None:
        self.estate, self.operator = estate, Operator(estate)

    def run(self, *words: str) -> tuple[int, str]:
        code, out, err = run(Command(words=words, env=self.operator.environment()), WITHIN_S)
        return code, out + err

    def stand(self) -> Any:
        """All that a command changes, but for the Lease."""
        return self.estate.within(_stand)


def _stand(world: World) -> Any:
    nodes = [(node["metadata"]["labels"], node["spec"]) for node in world.kubernetes.store.sorted("nodes")]
    return [(vm.name, vm.power, vm.vgpus) for vm in world.estate.vms.values()], nodes


@pytest.fixture(scope="module")
def by_day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with Estate(tmp_path_factory.mktemp("by-day") / "estate", "by-day") as estate:
        yield Story(estate)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """An estate whose workers have no vGPU and no address space for one."""
    with Estate(tmp_path_factory.mktemp("bare") / "estate") as estate:
        yield Story(estate)


@pytest.mark.parametrize("privilege", PRIVILEGES, ids=named)
def test_without_a_privilege(by_day: Story, bare: Story, privilege: Privilege) -> None:
    expected = EXPECTED[named(privilege)]
    story = bare if expected.words == PROVISION else by_day
    before = story.stand()
    with story.operator.without(privilege):
        code, said = story.run(*expected.words)
    assert code == expected.code, said
    assert expected.said in said
    assert story.stand() == before, "it changed something all the same"

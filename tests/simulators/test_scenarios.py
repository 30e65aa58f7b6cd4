"""The scenarios that come with vgpuctl are what their comments say, and a scenario with mistakes tells them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from vgpuctl.sim.errors import SimError
from vgpuctl.sim.files import profiles_text
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.kube.api.patches import MERGE
from vgpuctl.sim.kube.api.request import Request
from vgpuctl.sim.scenarios import EXAMPLES, find_scenario, summary
from vgpuctl.sim.scenarios.scenario import read_scenario
from vgpuctl.sim.vcenter.physics.records import Changes, Task, Vm
from vgpuctl.sim.world import World

#: Scenarios that begin with their day workers awake, so their first shift does not start.
AT_WORK = ("by-day", "cluster-api", "host-crash", "lagging-clocks", "large", "no-licences", "patched-host")


class Played:
    """One example, its workers provisioned as its profiles say."""

    def __init__(self, name: str) -> None:
        self.durations = Durations.instant()
        self.inventory: Inventory = read_scenario(find_scenario(name), self.durations)
        self.world = World(self.inventory, self.durations)
        for group in self.inventory.groups:
            for worker in group.workers:
                added = () if self.vm(worker).vgpus else tuple(enumerate(group.vgpus))
                self.world.estate.reconfigure(self.vm(worker), Changes(added=added, memory_locked=True))
        self.wait()

    def vm(self, name: str) -> Vm:
        return self.world.estate.vms[name]

    def wait(self, seconds: float = 60) -> None:
        self.world.wait(seconds)

    def start(self, *names: str) -> list[str | None]:
        """How each start ended: with nothing, or with a fault."""
        return self.all_of([self.world.estate.power_on(self.vm(name)) for name in names])

    def suspend(self, *names: str) -> list[str | None]:
        return self.all_of([self.world.estate.suspend(self.vm(name)) for name in names])

    def all_of(self, tasks: list[Task]) -> list[str | None]:
        self.wait()
        return [task.error.kind if task.error else task.state.value if not task.done else None for task in tasks]


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in AT_WORK])
def test_every_example_can_begin_and_its_first_shift_starts(name: str) -> None:
    played = Played(name)
    assert summary(EXAMPLES[name])
    awake = played.start(*played.inventory.first_awake)
    assert set(awake) == ({None, "running"} if name == "difficult-vms" else {None})


def test_spreading_over_the_cards_leaves_no_whole_one() -> None:
    spread, filled = Played("two-cards-performance"), Played("two-cards-consolidation")
    for played in (spread, filled):
        assert played.start("worker-1", "worker-2") == [None, None]
    assert spread.start("worker-3") == ["InsufficientGraphicsResourcesFault"]
    assert filled.start("worker-3") == [None]


@pytest.mark.parametrize("name", ["a100-mixed-size", "a100-mig"])
def test_the_night_takes_a_card_whose_day_workers_sleep(name: str) -> None:
    played = Played(name)
    *day, night = [worker for group in played.inventory.groups for worker in group.workers]
    played.start(*day)
    assert played.start(night) == ["InsufficientGraphicsResourcesFault"]
    assert set(played.suspend(*day)) == {None}
    assert played.start(night) == [None]


def test_a_card_that_is_not_shared_direct_takes_no_vgpu() -> None:
    played = Played("not-ready-for-vgpus")
    assert played.start("worker-1") == [None]
    assert played.start("worker-3") == ["InsufficientGraphicsResourcesFault"]


def test_unlucky_nights() -> None:
    card, memory, space = Played("no-card-at-night"), Played("no-memory-at-night"), Played("no-space-at-night")
    for played in (card, memory, space):
        played.start(*played.inventory.first_awake)
    assert set(card.suspend("worker-1", "worker-2", "worker-3")) == {None}
    assert card.start("worker-4") == ["InsufficientGraphicsResourcesFault"]
    assert set(memory.suspend("worker-1", "worker-2", "worker-3", "worker-4")) == {None}
    assert memory.start("worker-5") == ["InsufficientMemoryResourcesFault"]
    ends = space.suspend("worker-1", "worker-2", "worker-3", "worker-4")
    assert sorted(map(str, ends)) == ["NoDiskSpace", "None", "None", "None"]


def test_one_night_worker_of_three_would_take_of_what_ha_keeps() -> None:
    played = Played("no-failover-at-night")
    day = played.inventory.first_awake
    assert set(played.start(*day)) == {None}
    assert set(played.suspend(*day)) == {None}
    assert played.start("worker-5", "worker-15", "worker-10") == [None, None, "InsufficientFailoverResourcesFault"]


def test_a_datastore_has_room_for_two_sleepers_in_one_datacenter_and_for_all_in_the_other() -> None:
    played = Played("several-datacenters")
    played.start(*played.inventory.first_awake)
    assert set(played.suspend(*(f"north-{number}" for number in range(1, 5)))) == {None}
    moved = played.vm("south-3")
    moved.suspend_store = played.vm("south-1").store
    assert played.suspend("south-1", "south-2") == [None, None]
    assert played.suspend("south-3") == ["NoDiskSpace"]
    assert played.suspend("south-4") == [None]


def test_a_budget_that_can_never_be_met() -> None:
    played = Played("budget-never-met")
    for worker in played.inventory.first_awake:
        patch = b'{"metadata":{"labels":{"vgpu.type":"v100-4q-4GB"}},"spec":{"unschedulable":null,"taints":null}}'
        path = f"/api/v1/nodes/{worker}"
        played.world.people._api.answer(Request(method="PATCH", path=path, body=patch, content_type=MERGE))
    played.start(*played.inventory.first_awake)
    played.wait(120)
    budget = played.world.kubernetes.store.get("poddisruptionbudgets", "default", "notebooks")
    assert budget is not None
    assert (budget["status"]["currentHealthy"], budget["status"]["disruptionsAllowed"]) == (4, 0)


MISTAKEN = """\
version: 2
hosts:
  - name: esx-1
    cards: [V10-16, {model: V100-16, mode: mixed-size}]
    policy: performence
profiles:
  small: grid_v100-4q
workers:
  - {name: "worker-[4-1]", profile: smal, memory: much}
  - {name: worker-9, profile: small, host: esx-2, colour: red}
  - {name: worker-9, profile: small}
shift:
  day: small
"""


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "mistaken.yaml"
    path.write_text(MISTAKEN)
    with pytest.raises(SimError) as caught:
        read_scenario(path, Durations())
    told = str(caught.value)
    for words in (
        "shift: is not known; did you mean shifts?",
        "version: must be 1",
        "hosts[0].cards[0].model: no card is named 'V10-16'; did you mean V100-16?",
        "hosts[0].cards[1].mode: V100-16 does not have this mode",
        "hosts[0].policy: must be one of performance, consolidation; did you mean performance?",
        "workers[0].name: 'worker-[4-1]' is not a name",
        "workers[0].profile: there is no profile 'smal'; did you mean small?",
        "workers[1].colour: is not known",
        "workers[1].host: there is no host 'esx-2'; did you mean esx-1?",
        "workers[2].name: worker-9 is there twice",
    ):
        assert words in told


@pytest.mark.parametrize(
    "text", ["", "[1, 2]", "hosts: 5", "version: 1\nhosts: [3]", "{a: [", "version: 1\nworkers: {}"]
)
def test_what_is_no_scenario_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(SimError):
        read_scenario(path, Durations())


def test_an_unknown_example_names_the_nearest() -> None:
    with pytest.raises(SimError, match="did you mean a100-mig"):
        find_scenario("a100-mgi")


def test_the_documented_scenario_is_one(tmp_path: Path) -> None:
    page = ROOT / "docs" / "reference" / "scenarios.md"
    path = tmp_path / "documented.yaml"
    path.write_text(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)[0])
    durations = Durations()
    inventory = read_scenario(path, durations)
    assert (len(inventory.hosts), len(inventory.vms), durations.store_mib_per_s) == (2, 8, 500)
    assert inventory.shifts[1].starts == "0 22 * * *"
    World(inventory, durations)


def test_any_names_are_written_into_the_wishes(tmp_path: Path) -> None:
    path = tmp_path / "names.yaml"
    workers = "[{name: 'gpu-[8-11]', profile: a}, {name: 'b-[1-2]', profile: a}, {name: web, profile: a}]"
    path.write_text(
        f"version: 1\nhosts: [{{name: esx-1, cards: [V100-16]}}]\nprofiles: {{a: grid_v100-4q}}\nworkers: {workers}\n"
    )
    text = profiles_text(read_scenario(path, Durations()))
    assert all(f"  {pattern}: a\n" in text for pattern in ("gpu-[8-11]", "b-[1-2]", "web"))


@pytest.mark.parametrize("cards", ["V100-16", "5"])
def test_cards_that_are_no_list_are_told(tmp_path: Path, cards: str) -> None:
    path = tmp_path / "cards.yaml"
    path.write_text(f"version: 1\nhosts: [{{name: esx-1, cards: {cards}}}]\n")
    with pytest.raises(SimError, match="must be a list of models"):
        read_scenario(path, Durations())


DOUBTFUL = """\
version: 1
hosts:
  - {name: "esx-[1-2]", cards: [V100-16]}
  - {cards: [V100-16]}
  - name: esx-2
profiles:
  small one: grid_v100-4q
  small: grid_v100-4q
  small: grid_v100-8q
workers:
  - profile: small
workloads:
  - {name: notebooks, replicas: 2}
  - {replicas: 1}
  - {name: Note_Books}
  - name: notebooks
    kind: Job
  - name: gateway
    budget:
      min-available: 1
      max-unavailable: 1
"""


def test_names_that_are_missing_doubled_or_none_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "doubtful.yaml"
    path.write_text(DOUBTFUL)
    with pytest.raises(SimError) as caught:
        read_scenario(path, Durations())
    assert [line.strip() for line in str(caught.value).splitlines()[1:]] == [
        "line 9: profiles.small: is written twice",
        "line 4: hosts[1]: needs a name",
        "line 5: hosts[2].name: esx-2 is there twice",
        "line 7: profiles.small one: is no label's value",
        "line 11: workers[0]: needs a name",
        "line 14: workloads[1]: needs a name",
        "line 15: workloads[2].name: 'Note_Books' must be of a-z, 0-9, - and ., 63 at most",
        "line 16: workloads[3].name: notebooks is there twice",
        "line 19: workloads[4].budget: must set only one of min-available and max-unavailable",
    ]


PLACED = """\
version: 1
hosts:
  - {name: "esx-[1-2]", datacenter: a/b}
  - {name: esx-3, datacenter: dc-3}
profiles: {small: grid_v100-4q}
workers:
  - {name: "a-[1-3]", vm-name: "gpu-[1-2]", profile: small}
  - {name: b, vm-name: gpu, host: esx-3, folder: team, profile: small}
  - {name: c, vm-name: gpu, host: esx-3, folder: /team/, profile: small}
  - {name: gpu, host: esx-3, folder: team, datastore: "[x]", profile: small}
datastores:
  big: much
"""


def test_names_that_are_twice_in_one_folder_or_no_names_of_places_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "placed.yaml"
    path.write_text(PLACED)
    with pytest.raises(SimError) as caught:
        read_scenario(path, Durations())
    assert set(map(str.strip, str(caught.value).splitlines()[1:])) == {
        "line 3: hosts[0].datacenter: 'a/b' must be a name without / and brackets",
        "line 7: workers[0].vm-name: must be as many names as name has, which are 3",
        "line 9: workers[2].vm-name: /dc-3/vm/team/gpu is there twice",
        "line 10: workers[3].datastore: '[x]' must be a name without / and brackets",
        "line 10: workers[3].name: /dc-3/vm/team/gpu is there twice",
        "line 12: datastores.big: 'much' is not a size such as 64GiB or 500MiB",
    }


def test_profiles_of_one_workload_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "alike.yaml"
    workers = "[{name: a, profile: v1.5}, {name: b, profile: V1_5}]"
    profiles = "{v1.5: grid_v100-4q, V1_5: grid_v100-8q}"
    path.write_text(f"version: 1\nhosts: [{{name: esx-1}}]\nprofiles: {profiles}\nworkers: {workers}\n")
    with pytest.raises(SimError, match=r"line 3: profiles.V1_5: its pods would be called pods-of-v1-5, too"):
        read_scenario(path, Durations())

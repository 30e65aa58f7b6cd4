"""Many provisions in virtual time, each with its own faults: few workers are out at once, and the next run ends it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from tests.support.trouble import random_rule
from vgpuctl.model.fleet import Fleet
from vgpuctl.planning.steps import equipped
from vgpuctl.planning.wishes import Provisioning
from vgpuctl.sim.faults import KUBERNETES, VCENTER, Effect, How, Rule
from vgpuctl.sim.inventory import Durations, default_inventory

SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5, 200))]
TRIES = 6
CALLS = ["ShutdownGuest", "PowerOffVM_Task", "ReconfigVM_Task", "PowerOnVM_Task"]
POWER_OFF_AFTER_S = 60.0
NEVER_S = 1e6
PROFILES = {
    "v100-2q-2GB": ("grid_v100-2q",),
    "v100-4q-4GB": ("grid_v100-4q",),
    "v100-8q-8GB": ("grid_v100-8q",),
    "v100-16q-16GB": ("grid_v100-16q",),
    "two-quarters": ("grid_v100-4q", "grid_v100-4q"),
}


class Provision:
    """An estate by day or by night, with profiles changed at random within what is not refused."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rehearsal = Rehearsal.of(at_work(default_inventory(1, self.chance.choice([1, 1, 2]))), Durations())
        self.rehearsal.wait(60)
        firm = self.chance.random() < 0.4
        if self.chance.random() < 0.2:
            assert self.rehearsal.switch("night").finished
        self.how = Provisioning(
            max_unavailable=self.chance.randrange(1, 5), power_off_after_s=POWER_OFF_AFTER_S if firm else None
        )
        if firm:
            self._some_guests_are_deaf()
        self.before = self.rehearsal.fleet()
        self.used = {w.name for w in self.before.workers.values() if w.on and w.node and not w.node.unschedulable}
        while not self._wants_something_lawful():
            pass
        self.most_out = 0
        self.rehearsal.watch = self._look

    def _some_guests_are_deaf(self) -> None:
        """Some begin to shut down and never end it, some have no tools at all."""
        self.rehearsal.world.durations.guest_shutdown_s = self.chance.choice([1.0, NEVER_S, NEVER_S])
        for vm in self.rehearsal.world.estate.vms.values():
            self.rehearsal.world.estate.set_tools(vm, self.chance.random() < 0.7)

    def _wants_something_lawful(self) -> bool:
        common = self.chance.choice([*PROFILES, "none"])
        wanted = {
            name: self.chance.choice([worker.profile, common, common, self.chance.choice([*PROFILES, "none"])])
            for name, worker in self.before.workers.items()
        }
        self.rehearsal.want(PROFILES, wanted)
        return not self.right(self.rehearsal.fleet()) and not self.rehearsal.refused(self.how)

    def right(self, fleet: Fleet) -> bool:
        catalogue = self.rehearsal.files.catalogue
        return all(equipped(worker, catalogue.profile(worker.profile).vgpus) for worker in fleet.workers.values())

    def _look(self, fleet: Fleet) -> None:
        there = [worker for name, worker in fleet.workers.items() if name in self.used]
        out = [worker for worker in there if not worker.on or (worker.node and worker.node.unschedulable)]
        self.most_out = max(self.most_out, len(out))

    def has_faults(self) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            rule = random_rule(self.chance)
            method = self.chance.choice(CALLS) if rule.server == VCENTER else rule.method
            self.rehearsal.world.calls.faults.add(replace(rule, method=method))

    def is_calm_again(self) -> None:
        world = self.rehearsal.world
        for standing in world.calls.faults:
            world.calls.faults.clear(standing.id)
        world.estate.work.release_hung()
        self.rehearsal.wait(60)


def four_to_change(**durations: float) -> Rehearsal:
    """The four workers of one card, which has one size at a time, shall carry a smaller vGPU."""
    rehearsal = Rehearsal.of(at_work(default_inventory()), Durations(**durations))  # type: ignore[arg-type]
    rehearsal.wait(60)
    rehearsal.want(PROFILES, {f"worker-{number}": "v100-2q-2GB" for number in range(1, 5)})
    return rehearsal


def stand(rehearsal: Rehearsal) -> set[tuple[object, ...]]:
    """Each way in which a worker stands: power, what it carries, whether it is cordoned, whether it bears a record."""
    workers = [worker for worker in rehearsal.fleet().workers.values() if worker.node]
    return {(w.on, w.vgpus[0], w.node.unschedulable, w.node.record is None) for w in workers if w.node}


def used_with(vgpu: str) -> set[tuple[object, ...]]:
    return {(True, vgpu, False, True)}


ALL_FOUR = Provisioning(max_unavailable=4)


@pytest.mark.parametrize(
    ("method", "how", "what", "left_with"),
    [
        ("ShutdownGuest", How.FAIL, "ToolsUnavailable", "grid_v100-4q"),
        ("ReconfigVM_Task", How.TASK_FAILS, "NoDiskSpace", "grid_v100-4q"),
        ("ReconfigVM_Task", How.FAIL, "SystemError", "grid_v100-4q"),
        ("PowerOnVM_Task", How.TASK_FAILS, "NoDiskSpace", "grid_v100-2q"),
    ],
)
@pytest.mark.parametrize("guest_shutdown_s", [1.0, 100.0])
def test_where_one_cannot_be_changed_all_run_again(
    method: str, how: How, what: str, left_with: str, guest_shutdown_s: float
) -> None:
    """With what they carried before, where the card is of one size and one of them could not be changed."""
    rehearsal = four_to_change(guest_shutdown_s=guest_shutdown_s)
    effect = Effect(how=how, what=what)
    rehearsal.world.calls.faults.add(Rule(server=VCENTER, method=method, on="worker-2", effect=effect, times=1))
    ended = rehearsal.provision(ALL_FOUR)
    assert (ended.finished, list(ended.state.going_back), dict(ended.state.gave_up)) == (True, ["esx-1"], {})
    rehearsal.wait(300)
    assert stand(rehearsal) == used_with(left_with)
    assert rehearsal.provision(ALL_FOUR).finished
    assert (stand(rehearsal), rehearsal.broken) == (used_with("grid_v100-2q"), [])


TASKS = ("ReconfigVM_Task", "PowerOnVM_Task")
OF_VCENTER = ("ShutdownGuest", *TASKS)
OF_KUBERNETES = ("PATCH nodes", "POST pods/eviction")
#: Each call that a provision writes by, with each thing that may happen to it.
WRITES_MET = [
    *((VCENTER, call, how) for call in OF_VCENTER for how in (How.FAIL, How.HANG, How.LOSE_REPLY, How.CUT)),
    *((VCENTER, call, how) for call in TASKS for how in (How.TASK_FAILS, How.TASK_HANGS)),
    *((KUBERNETES, call, how) for call in OF_KUBERNETES for how in (How.FAIL, How.HANG, How.LOSE_REPLY, How.CUT)),
]


@pytest.mark.parametrize("nth", [1, pytest.param(2, marks=pytest.mark.long), 4])
@pytest.mark.parametrize(("server", "call", "how"), WRITES_MET)
def test_whatever_happens_to_any_write_the_next_run_ends_it(server: str, call: str, how: How, nth: int) -> None:
    """A write that was carried out is not repeated, whether its reply came or not."""
    # A node changes while a patch of it hangs only if its kubelet posts every status.
    hangs = (call, how) == ("PATCH nodes", How.HANG)
    rehearsal = four_to_change(**({"report_s": 0.0} if hangs else {}))
    what = {VCENTER: "SystemError", KUBERNETES: "500"}[server]
    effect = Effect(how=how, what=what, seconds=4.0)
    rehearsal.world.calls.faults.add(Rule(server=server, method=call, effect=effect, nth=nth))
    rehearsal.provision(ALL_FOUR, until_s=3600)
    (standing,) = rehearsal.world.calls.faults
    assert standing.met == 1
    once = Counter(rehearsal.sent)
    rehearsal.world.calls.faults.clear(standing.id)
    rehearsal.world.estate.work.release_hung()
    assert rehearsal.provision(ALL_FOUR).finished
    assert (stand(rehearsal), rehearsal.broken) == (used_with("grid_v100-2q"), [])
    again = sorted(key for key, times in Counter(rehearsal.sent).items() if times > 1)
    if hangs:
        assert [key.partition("/")[0] for key in again] == ["Cordon"], (
            "the node had changed when it came: it was refused"
        )
    elif how in {How.LOSE_REPLY, How.HANG}:
        assert again == []
    elif how is How.CUT:
        assert sorted(times for times in once.values() if times > 1) == [2], "what was not carried out is sent again"


def test_power_is_given_back_after_a_way_back_that_was_cut_short() -> None:
    rehearsal = four_to_change()
    broken = Effect(how=How.FAIL, what="SystemError")
    rehearsal.world.calls.faults.add(Rule(server=VCENTER, method="ReconfigVM_Task", on="worker-2", effect=broken))
    rehearsal.world.calls.faults.add(Rule(server=VCENTER, method="PowerOnVM_Task", effect=broken))
    assert rehearsal.provision(ALL_FOUR).state.gave_up
    for standing in rehearsal.world.calls.faults:
        rehearsal.world.calls.faults.clear(standing.id)
    assert rehearsal.provision(ALL_FOUR).finished
    assert (stand(rehearsal), rehearsal.broken) == (used_with("grid_v100-2q"), [])


@pytest.mark.parametrize(
    "after", [*range(3, 40, 12), *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 40) if n % 12 != 3)]
)
def test_killed_after_any_write_no_write_is_repeated(after: int) -> None:
    """Nor is any pod evicted twice, nor a guest that is on its way down asked again."""
    rehearsal = four_to_change()
    rehearsal.provision(ALL_FOUR, die_after=after)
    assert rehearsal.provision(ALL_FOUR).finished
    assert (stand(rehearsal), rehearsal.broken) == (used_with("grid_v100-2q"), [])
    assert {key for key, times in Counter(rehearsal.sent).items() if times > 1} == set()


@pytest.mark.parametrize(
    ("effect", "cut_off", "asked"),
    [
        (None, "1234", "1234"),
        (Effect(how=How.LOSE_REPLY), "1234", "1234"),
        (Effect(how=How.HANG, seconds=3.0), "1234", "1234"),
        (Effect(how=How.CUT), "12234", "1234"),
        # All are given back, and changed by the next run; the guest of worker-2 has been going down all the while.
        (Effect(how=How.FAIL, what="SystemError"), "11223344", "1123344"),
        (Effect(how=How.TASK_FAILS, what="SystemError"), "11223344", "1123344"),
    ],
)
def test_guests_that_never_end_are_powered_off_where_that_is_allowed(
    effect: Effect | None, cut_off: str, asked: str
) -> None:
    rehearsal = four_to_change(guest_shutdown_s=NEVER_S)
    if effect:
        rule = Rule(server=VCENTER, method="PowerOffVM_Task", on="worker-2", effect=effect, times=1)
        rehearsal.world.calls.faults.add(rule)
    firm = replace(ALL_FOUR, power_off_after_s=POWER_OFF_AFTER_S)
    rehearsal.provision(firm)
    assert rehearsal.provision(firm).finished
    assert (stand(rehearsal), rehearsal.broken) == (used_with("grid_v100-2q"), [])
    stops = [key.removeprefix("ShutDown/worker-") for key in rehearsal.sent if key.startswith("ShutDown/")]
    assert "".join(sorted(stop[0] for stop in stops if stop.endswith("/power-off"))) == cut_off
    assert "".join(sorted(stop[0] for stop in stops if stop.endswith("/"))) == asked


def test_after_a_crash_a_way_back_knows_what_was_carried_before() -> None:
    """One was changed already when the process died; another cannot be, and the card has one size."""
    first = four_to_change()
    assert first.provision(ALL_FOUR).finished
    rehearsal = four_to_change()
    rehearsal.provision(ALL_FOUR, die_after=first.sent.index("Attach/worker-2/"))
    rehearsal.wait(30)
    assert rehearsal.fleet().worker("worker-1").vgpus == ("grid_v100-2q",)
    broken = Effect(how=How.FAIL, what="SystemError")
    rehearsal.world.calls.faults.add(Rule(server=VCENTER, method="ReconfigVM_Task", on="worker-2", effect=broken))
    ended = rehearsal.provision(ALL_FOUR)
    assert (ended.finished, list(ended.state.going_back), dict(ended.state.gave_up)) == (True, ["esx-1"], {})
    assert (stand(rehearsal), rehearsal.broken) == (used_with("grid_v100-4q"), [])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_provision_with_faults_breaks_no_law_and_the_next_run_ends_it(seed: int) -> None:
    some = Provision(seed)
    rehearsal, chance = some.rehearsal, some.chance
    some.has_faults()
    rehearsal.provision(some.how, die_after=chance.choice([None, None, chance.randrange(1, 25)]))
    some.is_calm_again()
    for _ in range(TRIES):
        assert rehearsal.refused(some.how) == ()
        if rehearsal.provision(some.how).finished and some.right(rehearsal.fleet()):
            break
    after = rehearsal.fleet()
    assert rehearsal.broken == []
    assert some.right(after)
    assert {name: (w.power, w.node and w.node.record) for name, w in after.workers.items()} == {
        name: (w.power, w.node and w.node.record) for name, w in some.before.workers.items()
    }
    assert some.how.max_unavailable is not None
    assert some.most_out <= some.how.max_unavailable
    sent = len(rehearsal.sent)
    assert rehearsal.provision(some.how).finished
    assert len(rehearsal.sent) == sent, "a repeated run writes nothing"

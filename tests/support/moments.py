"""Stories in which everything hangs on one moment, such as seeds meet only now and then. Each tells the laws broken."""

from __future__ import annotations

from functools import partial

from tests.support.adventures import BEGAN, Adventure
from tests.support.day import at_work, files_of
from vgpuctl.sim.faults import KUBERNETES, VCENTER, Effect, How, Rule
from vgpuctl.sim.inventory import Durations, default_inventory
from vgpuctl.sim.world import World

#: Around the moment at which the first worker is about to stop, where pods are seen three seconds late.
MOMENTS_S = (1.0, 2.5, 4.0, 5.5)


def a_pod_comes_when_its_worker_is_about_to_stop() -> list[str]:
    """At one moment or another it is there already and cannot be seen yet."""
    return [law for when_s in MOMENTS_S for law in _a_pod_comes(when_s)]


def _a_pod_comes(when_s: float) -> list[str]:
    lived = _by_day(Durations())
    lived.see_late_by(pods=3.0)
    lived.world.clock.after(when_s, partial(lived.people.do, "bare-pod", "worker-1", 1))
    lived.switch("night", until_s=20.0)
    return [*lived.broken, *lived.judge.broken]


def a_suspend_has_no_answer_and_its_host_goes_back() -> list[str]:
    """It may have been taken, and vCenter's stream shows it late."""
    lived = _by_day(Durations(suspend_s=4.0))
    lived.see_late_by(vcenter=3.0)
    for worker, effect in (
        ("worker-1", Effect(how=How.LOSE_REPLY)),
        ("worker-2", Effect(how=How.FAIL, what="NoDiskSpace")),
    ):
        rule = Rule(server=VCENTER, method="SuspendVM_Task", on=worker, effect=effect, times=1)
        lived.world.calls.faults.add(rule)
    assert lived.switch("night").state.going_back
    return [*lived.broken, *lived.judge.broken]


def somebody_shuts_a_guest_down_while_its_uncordon_hangs() -> list[str]:
    """It was right when it was sent, and nothing that the node reports meanwhile refuses it."""
    lived = _by_day(Durations(report_s=300.0))
    hangs = Effect(how=How.HANG, seconds=20.0)
    rule = Rule(server=KUBERNETES, method="PATCH nodes", on="worker-5", effect=hangs, nth=2)
    standing = lived.world.calls.faults.add(rule)
    lived.world.clock.after(25.0, partial(lived.people.do, "power", "worker-5", 3))
    lived.switch("night", until_s=60.0)
    assert standing.met
    return [*lived.broken, *lived.judge.broken]


def _by_day(durations: Durations) -> Adventure:
    inventory = at_work(default_inventory())
    lived = Adventure(World(inventory, durations, began=BEGAN), files_of(inventory))
    lived.wait(60)
    return lived

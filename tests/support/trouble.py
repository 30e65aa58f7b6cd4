"""Faults that several tests let happen: drawn by chance, or the same each time."""

from __future__ import annotations

import random

from vgpuctl.sim.faults import KUBERNETES, VCENTER, Effect, How, Rule

#: No power-on of the night worker succeeds.
NO_NIGHT = Rule(
    server=VCENTER,
    method="PowerOnVM_Task",
    on="worker-5",
    effect=Effect(how=How.TASK_FAILS, what="NoCompatibleHost"),
)


def random_rule(chance: random.Random) -> Rule:
    how = chance.choice([How.CUT, How.LOSE_REPLY, How.HANG, How.FAIL, How.TASK_FAILS, How.TASK_HANGS])
    server = VCENTER if how in (How.TASK_FAILS, How.TASK_HANGS) else chance.choice([VCENTER, KUBERNETES])
    methods = {
        VCENTER: ["SuspendVM_Task", "PowerOnVM_Task", "ShutdownGuest", "PowerOffVM_Task", "ReconfigVM_Task", "*"],
        KUBERNETES: ["PATCH nodes", "POST pods/eviction", "DELETE pods", "GET pods", "*"],
    }
    refusals = {VCENTER: ["TaskInProgress", "NoDiskSpace", "SystemError"], KUBERNETES: ["503", "500", "429"]}
    what = chance.choice(refusals[server])
    effect = Effect(how=how, what=what, seconds=chance.choice([1.0, 20.0]))
    times = 1 if how is How.TASK_HANGS else chance.randrange(1, 5)
    return Rule(
        server=server,
        method=chance.choice(methods[server]),
        effect=effect,
        chance=chance.choice([0.1, 0.4, 1.0]),
        seed=chance.randrange(1000),
        times=times,
    )

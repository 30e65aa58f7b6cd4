"""Real processes: a provision of running workers is killed or meets a fault; the next run ends it, nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.depth import only_long
from tests.support.lab import Lab
from vgpuctl.sim.faults import How

DAY = ("worker-1", "worker-2", "worker-3", "worker-4")
SMALL = "v100-2q-2GB"
COMMAND = ("provision", "--yes", "--max-unavailable", "4")
CALLS = ("ShutdownGuest", "ReconfigVM_Task", "PowerOnVM_Task")

#: Lease, four times (cordon, shut down, attach, mark, start, uncordon), the evictions, release.
SAMPLE = 17
POINTS = range(1, 46)
SURELY_BEFORE_THE_END = 26
WENT_BACK = 4


@pytest.fixture
def changed(day: Lab) -> Lab:
    """The four day workers, which run, shall carry a smaller vGPU."""
    profiles = day.folder / "profiles.yaml"
    text = profiles.read_text().replace("workers:", f"  {SMALL}:\n    vgpu: grid_v100-2q\n\nworkers:")
    profiles.write_text(text.replace("worker-[1-4]: v100-4q-4GB", f"worker-[1-4]: {SMALL}"))
    return day


def is_provisioned(lab: Lab) -> None:
    """Each carries its profile, has its power back, and bears nothing of ours but its labels."""
    status, nodes = lab.status(), lab.nodes()
    for name in DAY:
        assert status[name]["vgpus"] == ["grid_v100-2q"]
        assert status[name]["power"] == "poweredOn"
        assert status[name]["node"]["state"] == "ready"
        assert nodes[name]["metadata"]["labels"]["vgpu.type"] == SMALL
        assert "unschedulable" not in nodes[name]["spec"]
        assert not [key for key in nodes[name]["metadata"].get("annotations", {}) if key.startswith("vgpuctl.io/")]
        assert "vgpuctl.io/state" not in nodes[name]["metadata"]["labels"]
    assert status["worker-5"]["power"] == "poweredOff"


def the_next_run_ends_it(lab: Lab) -> None:
    lab.vgpuctl(*COMMAND).ok()
    writes = lab.writes()
    is_provisioned(lab)
    assert {call: writes[call] for call in CALLS} == dict.fromkeys(CALLS, 4), "no write is repeated"
    lab.vgpuctl(*COMMAND).ok()
    assert lab.writes() == {}


def killed_after(lab: Lab, nth: int) -> None:
    lab.calls()
    code = lab.killed_after(nth, *COMMAND)
    assert code == -9 or (code == 0 and nth > SURELY_BEFORE_THE_END), code
    assert code == 0 or nth < max(POINTS), "there are more writes than points"
    the_next_run_ends_it(lab)


def test_a_sample_of_kill_points_of_a_provision(changed: Lab) -> None:
    killed_after(changed, SAMPLE)


@pytest.mark.long
@pytest.mark.parametrize("nth", POINTS)
def test_every_kill_point_of_a_provision(changed: Lab, nth: int) -> None:
    killed_after(changed, nth)


@pytest.mark.parametrize(
    ("target", "how", "more"),
    [
        only_long("ReconfigVM_Task", How.LOSE_REPLY, {"nth": 2}),
        ("ReconfigVM_Task", How.TASK_FAILS, {"nth": 1, "what": "NoDiskSpace"}),
        only_long("ShutdownGuest", How.LOSE_REPLY, {"nth": 1}),
        only_long("PowerOnVM_Task", How.LOSE_REPLY, {"nth": 3}),
        only_long("PATCH nodes", How.LOSE_REPLY, {"every": 3}),
        only_long("POST pods/eviction", How.LOSE_REPLY, {"every": 2}),
        only_long("ReconfigVM_Task", How.HANG, {"nth": 1, "seconds": 0.3}),
        only_long("ShutdownGuest", How.HANG, {"nth": 2, "seconds": 0.3}),
        only_long("PowerOnVM_Task", How.HANG, {"nth": 1, "seconds": 0.3}),
        only_long("PATCH nodes", How.HANG, {"nth": 5, "seconds": 0.3}),
        only_long("ReconfigVM_Task", How.CUT, {"nth": 1}),
        only_long("ShutdownGuest", How.CUT, {"nth": 1}),
        only_long("PowerOnVM_Task", How.CUT, {"nth": 4}),
        only_long("PATCH nodes", How.FAIL, {"what": "500", "nth": 4}),
        only_long("POST pods/eviction", How.FAIL, {"what": "503", "nth": 2}),
        only_long("ShutdownGuest", How.FAIL, {"what": "ToolsUnavailable", "nth": 2}),
        only_long("ReconfigVM_Task", How.FAIL, {"what": "SystemError", "nth": 3}),
        only_long("PowerOnVM_Task", How.FAIL, {"what": "SystemError", "nth": 2}),
        only_long("PowerOnVM_Task", How.TASK_FAILS, {"nth": 2, "what": "NoDiskSpace"}),
        only_long("vcenter", How.END_SESSIONS, {"nth": 16}),
        only_long("PUT leases", How.LOSE_REPLY, {"nth": 1}),
    ],
)
def test_a_provision_comes_through_one_fault(changed: Lab, target: str, how: How, more: dict[str, Any]) -> None:
    """At once, or it goes back, all running again, and the next run comes through."""
    changed.fault(target, how, **more)
    first = changed.vgpuctl(*COMMAND)
    assert first.code in {0, WENT_BACK}, first.err
    if how is How.TASK_FAILS:
        assert (first.code, more["what"] in first.out + first.err) == (WENT_BACK, True)
    assert sum(changed.met()) > 0
    changed.clear_faults()
    assert changed.awake() == set(DAY)
    if first.code == 0:
        writes = changed.writes()
        for call in CALLS:
            came_to_nothing = int(target in {call, "vcenter"} and how is not How.LOSE_REPLY)
            assert 4 <= writes[call] <= 4 + came_to_nothing, (call, writes)
    changed.vgpuctl(*COMMAND).ok()
    is_provisioned(changed)
    changed.calls()
    changed.vgpuctl(*COMMAND).ok()
    assert changed.writes() == {}

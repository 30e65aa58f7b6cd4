"""The mission's story through the real servers and the real commands; kubectl is the independent witness."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.lab import Lab

DAY = {"worker-1", "worker-2", "worker-3", "worker-4"}
NIGHT = {"worker-5"}


def running_on(lab: Lab, app: str) -> set[str]:
    pods = lab.pods()
    return {
        pod["spec"]["nodeName"]
        for pod in pods
        if pod["metadata"]["name"].startswith(app) and pod["status"]["phase"] == "Running"
    }


def test_day_to_night_and_back(lab: Lab) -> None:
    lab.daytime()
    assert lab.awake() == DAY
    assert running_on(lab, "notebooks") == DAY

    lab.vgpuctl("switch", "night", "--yes").ok()
    lab.settle()
    assert lab.awake() == NIGHT
    assert running_on(lab, "training") == NIGHT
    assert running_on(lab, "notebooks") == set()
    assert running_on(lab, "gateway") == {"infra-1"}

    lab.vgpuctl("switch", "day", "--yes").ok()
    lab.settle()
    assert lab.awake() == DAY
    assert running_on(lab, "notebooks") == DAY


def test_a_second_run_writes_nothing(lab: Lab) -> None:
    lab.daytime()
    for words in (("provision", "--yes"), ("label-nodes",), ("switch", "day", "--yes"), ("switch", "day")):
        lab.calls()
        lab.vgpuctl(*words).ok()
        assert lab.writes() == {}, words


@pytest.mark.parametrize(("hosts", "cards"), [(1, 1), (8, 4)], ids=["5 workers", "160 workers"])
def test_calls_are_counted_and_few(make_lab: Callable[..., Lab], tmp_path: Path, hosts: int, cards: int) -> None:
    """Per VM moved one task call, per evicted pod one eviction, per node two patches (a third where a heartbeat came
    between) and, where it goes to sleep, one confirming list. All else, reads too, is the same at any size, but for
    what goes by the clock."""
    lab = by_day(make_lab, tmp_path, hosts, cards)
    leaving = [name for name in lab.awake() if name.startswith("day")]
    pods = lab.pods()
    evicted = sum(pod["spec"].get("nodeName") in leaving for pod in pods)
    lab.calls()
    lab.vgpuctl("switch", "night", "--yes").ok()
    found = {name: number for server in lab.calls().values() for name, number in server.items()}
    for by_the_clock in ("WaitForUpdatesEx", "CancelWaitForUpdates", "PUT leases", "PUT configmaps"):
        assert found.pop(by_the_clock) >= 1
    assert len(leaving) == 4 * hosts * cards
    nodes = len(leaving) + hosts * cards
    assert 2 * nodes <= found.pop("PATCH nodes") <= 3 * nodes
    assert found == {
        **WHATEVER_THE_SIZE,
        "SuspendVM_Task": len(leaving),
        "PowerOnVM_Task": hosts * cards,
        "POST pods/eviction": evicted,
        "GET pods": LIST_AND_WATCH + ONCE_MORE + len(leaving),
    }


LIST_AND_WATCH = 2
#: After the Lease is taken.
ONCE_MORE = 1
LOOKED_AT = (
    "daemonsets",
    "jobs",
    "poddisruptionbudgets",
    "persistentvolumeclaims",
    "volumeattachments",
)
#: Departures, journal and Lease, and their namespace, which the first Lease did not find; an Event for each of two
#: owners, one list and one watch of each kind, and one session at vCenter, with one question about privileges.
WHATEVER_THE_SIZE = {
    "GET configmaps": 3,
    "PATCH configmaps": 2,
    "POST configmaps": 2,
    "POST events": 2,
    "GET leases": 3,
    "POST leases": 2,
    "POST namespaces": 1,
    **{f"GET {kind}": LIST_AND_WATCH for kind in LOOKED_AT},
    "GET nodes": LIST_AND_WATCH + ONCE_MORE,
    "RetrieveServiceContent": 1,
    "Login": 1,
    "Logout": 1,
    "CreateContainerView": 1,
    "CreatePropertyCollector": 1,
    "CreateFilter": 3,
    "HasPrivilegeOnEntities": 1,
}


def by_day(make_lab: Callable[..., Lab], tmp_path: Path, hosts: int, cards: int) -> Lab:
    """The mission's estate in any size. What depends on time is slowed down: heartbeats, and renewals of the Lease."""
    day, night = {"profile": "quarter", "vgpus": "grid_v100-4q"}, {"profile": "whole", "vgpus": "grid_v100-16q"}
    workers = [
        {"name": f"{shift}-{host}-[1-{number * cards}]", "host": f"esx-{host}", **more}
        for host in range(1, hosts + 1)
        for shift, number, more in (("day", 4, {**day, "power": "on"}), ("night", 1, night))
    ]
    scenario = {
        "version": 1,
        "hosts": [{"name": f"esx-[1-{hosts}]", "cards": ["V100-16"] * cards}],
        "profiles": {"quarter": "grid_v100-4q", "whole": "grid_v100-16q"},
        "workers": workers,
        "others": [{"name": "infra-1", "power": "on"}],
        "shifts": {"day": "quarter", "night": "whole"},
        "workloads": [
            {"name": "notebooks", "replicas": 4 * hosts * cards, "profile": "quarter"},
            {"name": "gateway", "replicas": 3, "budget": {"max-unavailable": 1}},
        ],
    }
    (tmp_path / "estate.yaml").write_text(json.dumps(scenario))
    lab = make_lab("--instant", "--scenario", str(tmp_path / "estate.yaml"))
    lab.durations(heartbeat_s=30)
    lab.more_env = {"VGPUCTL_LEASE_SECONDS": "60"}
    lab.settle()
    return lab


def test_a_dry_run_changes_nothing(by_day: Lab) -> None:
    shown = by_day.vgpuctl("switch", "night", "--dry-run").ok().out
    assert "4 workers go to sleep; 1 worker wakes; 7 pods leave" in shown
    assert "after worker-1, worker-2, worker-3, worker-4: power on → ready → label v100-16q-16GB → uncordon" in shown
    plan = by_day.json("vgpuctl", "switch", "night", "--dry-run")
    assert {step["name"] for step in plan["steps"] if step["name"].startswith("Suspend")} == {
        f"Suspend/{name}" for name in DAY
    }
    assert by_day.writes() == {}


def test_a_card_that_must_be_emptied_at_once_is_refused_with_the_way_out(day: Lab) -> None:
    """A card has one size: its four workers are out together."""
    profiles = day.folder / "profiles.yaml"
    text = profiles.read_text()
    text = text.replace("workers:", "  v100-4c-4GB:\n    vgpu: grid_v100-2q\n\nworkers:")
    profiles.write_text(text.replace("worker-[1-4]: v100-4q-4GB", "worker-[1-4]: v100-4c-4GB"))
    day.calls()
    alone = day.vgpuctl("provision", "--yes")
    assert (alone.code, day.writes()) == (3, {})
    assert "--max-unavailable 4" in alone.err


def test_a_persons_cordon_and_a_wrong_label_are_told_and_the_label_is_put_right(day: Lab) -> None:
    day.kubectl("cordon", "worker-3").ok()
    day.kubectl("label", "node", "worker-1", "vgpu.type=wrong", "--overwrite").ok()
    told = day.vgpuctl("status").ok().out
    assert "worker-3: cordoned by kubectl, not us" in told
    assert "worker-1: is labelled wrong, but carries v100-4q-4GB → vgpuctl label-nodes" in told
    day.vgpuctl("label-nodes").ok()
    assert day.nodes()["worker-1"]["metadata"]["labels"]["vgpu.type"] == "v100-4q-4GB"


def test_a_node_that_is_not_registered_is_told(day: Lab) -> None:
    """Its VM is off, so that no kubelet registers it again."""
    day.kubectl("delete", "node", "worker-5").ok()
    for _ in range(2):
        assert "Not yet registered: worker-5" in day.vgpuctl("label-nodes").ok().out


def test_the_owners_of_pods_are_told_and_nothing_stands_on_it(day: Lab) -> None:
    day.vgpuctl("switch", "night", "--yes").ok()
    events = day.json("kubectl", "get", "events")["items"]
    told = {e["involvedObject"]["kind"]: e["message"] for e in events if e["reason"] == "WorkerLeaves"}
    assert "will be evicted" in told["ReplicaSet"]
    day.fault("POST events", "fail", "403")
    day.vgpuctl("switch", "day", "--yes").ok()

"""Two daemons as real processes: one that is stopped (SIGSTOP) or ended in a switch never writes beside the other.

Processes: SIGSTOP holds all threads of one instance at once, which no clock in one process can do. The rules are proved
in virtual time in tests/edges/servers.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.daemons import ACTING, LEADING, daemons, wait_until
from vgpuctl.sim.world import World

DAY, NIGHT = {"worker-1", "worker-2", "worker-3", "worker-4"}, {"worker-5"}
#: On a loaded machine. The bench has the exact figures.
ROOM_S = 5.0


def test_a_leader_that_stood_still_writes_no_more_and_leads_again_after_the_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease_s = 2
    with daemons(tmp_path, monkeypatch, lease_s=lease_s, pod_end_s=1.0, suspend_s=1.0) as pair:
        pods = pair.estate.within(pods_by_day)
        pair.wants("night", other="day")
        first = pair.start()
        first.says("This daemon leads.")
        second = pair.start()
        # While no request is under way: one that was sent before would only arrive later. Once it goes on, the first
        # daemon sees at once that the pods are gone, and would suspend.
        wait_until(lambda: pair.log.count("POST pods") == pods)
        first.process.send_signal(signal.SIGSTOP)
        took_s = wait_until(lambda: pair.holds(LEADING) == second.pid)
        first.process.send_signal(signal.SIGCONT)
        pair.comes(NIGHT)
        first.says("This daemon does not lead any more.")
        ended_s = second.ends()
        led_s = wait_until(lambda: pair.holds(LEADING) == first.pid)
        print(f"taken over in {took_s:.1f} s; ended in {ended_s:.1f} s, and led again {led_s:.1f} s later")
        assert took_s < lease_s + 2 + ROOM_S
        assert ended_s < ROOM_S
        assert [each for each in pair.log.writes if each.leading != each.pid] == []
        assert pair.log.unfenced() == []
        assert pair.log.count("SuspendVM_Task") == 4, "no VM is suspended twice"


def pods_by_day(world: World) -> int:
    """The pods that a switch to night evicts."""
    pods = [pod for pod in world.kubernetes.store.all("pods") if pod["spec"].get("nodeName") in DAY]
    return sum(pod["metadata"]["ownerReferences"][0]["kind"] != "DaemonSet" for pod in pods)


def test_a_leader_that_is_ended_in_a_switch_hands_it_over_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Leases last for the 15 s of every day, and nobody waits for them."""
    with daemons(tmp_path, monkeypatch, suspend_s=2.0) as pair:
        pair.wants("night", other="day")
        first = pair.start()
        first.says("This daemon leads.")
        second = pair.start()
        wait_until(lambda: pair.log.count("SuspendVM_Task") == 4)
        ended_s = first.ends()
        took_s = wait_until(lambda: pair.holds(LEADING) == second.pid)
        assert pair.holds(ACTING) in {0, second.pid}
        pair.comes(NIGHT)
        print(f"ended in {ended_s:.1f} s, taken over {took_s:.1f} s later")
        assert first.process.returncode == 0
        assert ended_s + took_s < ROOM_S
        assert pair.log.unfenced() == []
        assert pair.log.count("SuspendVM_Task") == 4, "its tasks were left to the other one"
        assert pair.log.of(second.pid)

"""A person's commands against a daemon that runs: it gives way, takes orders up within seconds, and undoes nothing.

Processes: a command and a daemon meet only through the servers. What wins over what is proved in
tests/planning/test_precedence.py, and giving way in tests/edges/servers/test_giving_way.py.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.support.daemons import ACTING, Daemon, Daemons, daemons, wait_until

DAY, NIGHT = {"worker-1", "worker-2", "worker-3", "worker-4"}, {"worker-5"}
#: Within two seconds, and the room of a loaded machine.
SOON_S = 2.0 + 3.0


def test_a_person_is_let_pass_and_the_daemon_keeps_what_the_person_ordered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemons(tmp_path, monkeypatch, suspend_s=1.0, pod_end_s=0.1) as world:
        world.wants("night", other="day")
        daemon = world.start()
        stands_still_in_suspends(world)
        with world.begin("switch", "day", "--yes") as command:
            wait_until(lambda: world.holds(ACTING) == command.pid)
            world.estate.run()
            out, _ = command.communicate(30)
        assert command.returncode == 0, out
        assert "it gives way at the next safe point" in out
        assert "It stays so until" in out
        assert world.awake() == DAY
        assert not [each for each in world.log.of(daemon.pid) if each.what == "PowerOnVM_Task"], "no step after the ask"
        written = len(world.log.of(daemon.pid))
        # Two looks at the files, and the rings of what the command has written.
        time.sleep(2.5)
        assert world.log.of(daemon.pid)[written:] == []
        assert world.awake() == DAY
        world.log.writes.clear()
        with world.begin("switch", "night", "--yes") as command:
            stands_still_in_suspends(world)
            command.send_signal(signal.SIGINT)
            world.estate.run()
            out, _ = command.communicate(30)
        assert command.returncode == 130, out
        assert not [each for each in world.log.of(command.pid) if each.what == "PowerOnVM_Task"]
        world.comes(NIGHT)
        assert world.log.of(daemon.pid), "the daemon finishes what the person ordered"
        assert world.log.unfenced() == []


def stands_still_in_suspends(world: Daemons) -> None:
    """Let time stand still in the world once a switch to night suspends, so that no loaded machine is too late."""
    wait_until(lambda: world.log.count("SuspendVM_Task") == 4)
    world.estate.freeze()


def took_up(world: Daemons, daemon: Daemon, *words: str) -> None:
    """Run a command, and wait until the daemon writes again."""
    before = len(world.log.of(daemon.pid))
    code, out = world.run(*words)
    assert code == 0, out
    took_s = wait_until(lambda: len(world.log.of(daemon.pid)) > before, lambda: f"{words}: {daemon.said()}")
    print(f"{' '.join(words)}: taken up {took_s:.1f} s later")
    assert took_s < SOON_S


def test_orders_are_taken_up_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with daemons(tmp_path, monkeypatch, suspend_s=1.0, pod_end_s=0.1) as world:
        world.wants("day", other="night")
        daemon = world.start()
        daemon.says("This daemon leads.")
        took_up(world, daemon, "override", "night", "--for", "1h")
        stands_still_in_suspends(world)
        assert world.run("pause", "--now")[0] == 0
        daemon.says("paused by")
        world.estate.run()
        assert world.awake() <= DAY, "worker-5 is not started"
        took_up(world, daemon, "unpause")
        world.comes(NIGHT)
        assert world.run("hold", "worker-5", "--for", "1h")[0] == 0
        assert world.run("override", "clear")[0] == 0
        daemon.says("Blocked by hold")
        assert world.awake() == NIGHT
        took_up(world, daemon, "unhold", "worker-5")
        world.comes(DAY)
        assert world.run("maintenance", "enter", "esx-1", "--yes")[0] == 0
        assert world.run("override", "night", "--for", "1h")[0] == 0
        daemon.says("esx-1 is under maintenance")
        assert world.awake() == DAY
        took_up(world, daemon, "maintenance", "exit", "esx-1")
        world.comes(NIGHT)
        # Holds are written by the commands, at once and without the Lease.
        assert [each for each in world.log.unfenced() if each.pid == daemon.pid] == []

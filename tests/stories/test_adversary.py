"""An adversary over real HTTP, while `status -w`, the daemon and `switch` run as processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.between.adversary import Adversary
from tests.support.between.estate import INVENTORY
from tests.support.between.likeness import plain
from tests.support.between.proxy import Proxies
from tests.support.forked import Command, Forked, run
from vgpuctl.testing import Estate

#: No command may take longer, and no picture may be old for longer.
WITHIN_S = 60.0
#: How long the daemon may try to bring the night through the adversary.
NIGHT_WITHIN_S = 2.0
DAY, NIGHT = {"worker-1", "worker-2"}, {"worker-5"}
LAWFUL = {0, 1, 3, 4, 5, 6}
SEEDS = [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 11))]
SHORT = ("tests.support.between.proxy", "shorten")


@dataclass
class Commands:
    """vgpuctl's processes through the proxies. `said`: all that they have written where errors are."""

    estate: Estate
    proxies: Proxies
    said: list[str] = field(default_factory=list)

    def command(self, *words: str, disturbed: bool = True) -> Command:
        env = {**(self.proxies.env if disturbed else self.estate.environment()), "VGPUCTL_LEASE_SECONDS": "1"}
        return Command(words=words, env={**env, "HOME": str(self.estate.folder), "NO_COLOR": "1"}, first=SHORT)

    def run(self, *words: str, disturbed: bool = True) -> tuple[int, str]:
        code, out, err = run(self.command(*words, disturbed=disturbed), WITHIN_S)
        self.said += [out, err]
        return code, out

    def awake(self) -> set[str]:
        def found(world: Any) -> set[str]:
            return {vm.name for vm in world.estate.vms.values() if vm.power.value == "poweredOn"}

        return self.estate.within(found) - {"infra-1"}


class Watched:
    """`status -w -o json`, read as it writes. `last`: the newest document."""

    def __init__(self, process: Forked, said: list[str]) -> None:
        self.last: dict[str, Any] = {}
        self._said = said
        self._process = process
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                if line.startswith("{"):
                    self.last = json.loads(line)
                else:
                    self._said.append(line)
                self._changed.notify_all()

    def until(self, true: Callable[[dict[str, Any]], bool], within_s: float = WITHIN_S) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: bool(self.last) and true(self.last), within_s)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    folder: Path = tmp_path_factory.mktemp("adversary")
    with ExitStack() as stack:
        estate = stack.enter_context(Estate(folder / "estate", INVENTORY))
        # The daemon wants the night at any time.
        schedule = estate.folder / "schedules" / "day-night.yaml"
        schedule.write_text(schedule.read_text().replace("0 20 * * *", "* * * * *"))
        yield Commands(estate, stack.enter_context(Proxies(estate, folder)))


@pytest.mark.parametrize("seed", SEEDS)
def test_commands_and_the_daemon_end_lawfully_and_show_what_is_true(seed: int, commands: Commands) -> None:
    commands.said.clear()
    commands.proxies.adversary.rest()
    # No lies: what no client can find out may lead a switch astray.
    adversary = Adversary(seed, lies=False)
    with Forked(commands.command("status", "-w", "-o", "json"), stderr=subprocess.STDOUT) as process:
        watched = Watched(process, commands.said)
        assert watched.until(lambda _: True), commands.said
        commands.proxies.meet(adversary)
        assert _daemon(commands) in {*LAWFUL, 130}
        assert commands.run("switch", "day", "--yes")[0] in LAWFUL
        adversary.rest()
        assert commands.run("switch", "day", "--yes")[0] == 0, commands.said
        assert commands.awake() == DAY
        _comes_to_show_what_is_true(watched, commands)
        process.send_signal(signal.SIGINT)
        assert process.wait(WITHIN_S) == 130
    assert not [each for each in commands.said if "Traceback" in each or "bug in vgpuctl" in each]
    assert sum(adversary.counts.values()) > 5, adversary.counts


def _daemon(commands: Commands) -> int:
    """It brings the night, or is ended while it tries."""
    with Forked(commands.command("daemon"), stderr=subprocess.STDOUT) as daemon:
        ends_s = time.monotonic() + NIGHT_WITHIN_S
        while commands.awake() != NIGHT and time.monotonic() < ends_s:
            time.sleep(0.05)
        daemon.send_signal(signal.SIGTERM)
        out, _ = daemon.communicate(WITHIN_S)
        commands.said.append(out)
        assert daemon.returncode is not None
        return daemon.returncode


def _comes_to_show_what_is_true(watched: Watched, commands: Commands) -> None:
    """The same as a fresh, undisturbed look. Pods may still be starting, so the look is repeated."""
    ends_s = time.monotonic() + WITHIN_S / 2
    while True:
        true = lasting(json.loads(commands.run("status", "-o", "json", disturbed=False)[1]))
        if watched.until(partial(_shows, true), 1.0):
            return
        seen = lasting(watched.last)
        differ = {key: (seen.get(key), value) for key, value in true.items() if seen.get(key) != value}
        assert time.monotonic() < ends_s, differ


def _shows(true: dict[str, Any], last: dict[str, Any]) -> bool:
    return lasting(last) == true


def lasting(document: dict[str, Any]) -> dict[str, Any]:
    """What it says of the estate, in an order of its own: lists come in the order in which things were learned."""
    found: dict[str, Any] = plain({key: value for key, value in document.items() if key != "observedAt"})
    return found

"""What the daemon costs while nothing happens, and how soon it acts once a shift begins: `make bench`.

The daemon is a process of its own; the servers are in this one, so they can say what they were asked. It keeps the day,
and then the night begins.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.bench.daemon_rounds import rss_mib
from tests.bench.scale import cpu_s
from tests.support.daemons import Daemons, ServersLog, wait_until
from tests.support.day import at_work
from tests.support.paths import ROOT
from vgpuctl.sim.inventory import Durations, default_inventory
from vgpuctl.sim.kube.api.api import Api
from vgpuctl.sim.kube.api.request import target_of
from vgpuctl.testing import Estate

IDLE_S = 60.0
#: Of one core, lists while nothing changes, MiB, seconds from the start of a shift to the first write.
IDLE_PERCENT, LISTS, MEMORY_MIB, ACTS_WITHIN_S = 1.0, 0, 120, 2.0
ROUNDS, GROWTH_MIB = 10_000, 1.0
READY_WITHIN_S = 240.0


def main() -> None:
    for hosts, cards in ((1, 1), (64, 4)):
        with in_a_folder() as (folder, patch):
            keeps_and_switches(folder, hosts, cards, patch)
    with in_a_folder() as (folder, patch):
        rounds(folder, patch)


@contextmanager
def in_a_folder() -> Iterator[tuple[Path, pytest.MonkeyPatch]]:
    with tempfile.TemporaryDirectory(prefix="vgpuctl-bench-") as name, pytest.MonkeyPatch.context() as patch:
        yield Path(name), patch


def keeps_and_switches(folder: Path, hosts: int, cards: int, patch: pytest.MonkeyPatch) -> None:
    what = f"{hosts} × {cards}: "
    log, asked = ServersLog(patch), Asked(patch)
    with Estate(folder / "estate", at_work(default_inventory(hosts, cards)), durations=Durations()) as estate:
        log.world = lambda: estate.world
        daemons = Daemons(estate, log)
        night = begins_at(daemons, IDLE_S + 20 + hosts)
        try:
            daemon = started(daemons)
            wait_until(lambda: "It is day" in daemon.said(), daemon.said, READY_WITHIN_S)
            # What a switch leaves to be read is over.
            time.sleep(5)
            asked.lists.clear()
            before = cpu_s(daemon.pid)
            time.sleep(IDLE_S)
            tell(f"{what}idle, of one core", 100 * (cpu_s(daemon.pid) - before) / IDLE_S, IDLE_PERCENT, "%")
            tell(f"{what}lists in {IDLE_S:.0f} s", sum(asked.lists.values()), LISTS, str(dict(asked.lists)))
            tell(f"{what}memory", rss_mib(daemon.pid), MEMORY_MIB, "MiB")
            assert datetime.now(UTC) < night, "the night has begun too early to measure it"
            log.writes.clear()
            wait_until(lambda: bool(log.writes), daemon.said, READY_WITHIN_S)
            late_s = log.writes[0].at_s - time.monotonic() + time.time() - night.timestamp()
            tell(f"{what}from the start of a shift to the first write", late_s, ACTS_WITHIN_S, "s")
        finally:
            end(daemon)


NAMED = "from tests.support.named import named_after_its_process; named_after_its_process();"


@dataclass
class Started:
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        return self.log.read_text()


def started(daemons: Daemons, first: str = "") -> Started:
    """A daemon that is not forked: in a forked one, most of the memory is that of the process which forked it."""
    log = daemons.estate.folder.parent / "daemon.log"
    script = f"{NAMED} {first} from vgpuctl.cli import main; main()"
    with log.open("w") as out:
        words = [sys.executable, "-c", script, "daemon"]
        process = subprocess.Popen(words, env=dict(daemons.command().env), stdout=out, stderr=out, cwd=ROOT)
    return Started(process, log)


def end(daemon: Started) -> None:
    daemon.process.terminate()
    daemon.process.wait(60)


class Asked:
    """How often whole collections were listed, by path. A watch is no list."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.lists: Counter[str] = Counter()
        patch.setattr(Api, "answer", self._counting(Api.answer))

    def _counting(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        def counted(api: Any, request: Any, target: Any = None) -> Any:
            found = target or (target_of(request.path) if request.path.count("/") > 2 else None)
            if request.method == "GET" and not request.watch and found is not None and not found.name:
                self.lists[request.path] += 1
            return answer(api, request, target)

        return counted


def begins_at(daemons: Daemons, in_s: float) -> datetime:
    """Write a timetable whose night begins at the first whole minute after this time. Return that minute."""
    night = (datetime.now(UTC) + timedelta(seconds=in_s + 60)).replace(second=0, microsecond=0)
    day = night - timedelta(hours=6)
    text = daemons.timetable({"day": day, "night": night})
    (daemons.estate.folder / "schedules" / "day-night.yaml").write_text(text)
    return night


def rounds(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """The loop's rounds in a process of their own, one after the other, over servers in which nothing happens."""
    log = ServersLog(patch)
    with Estate(folder / "estate", at_work(default_inventory(1, 1)), durations=Durations()) as estate:
        log.world = lambda: estate.world
        daemons = Daemons(estate, log)
        daemons.wants("day", other="night")
        daemon = started(daemons, f"from tests.bench.daemon_rounds import without_pauses; without_pauses({ROUNDS});")
        try:
            wait_until(lambda: "rounds" in daemon.said(), daemon.said, READY_WITHIN_S)
            figures = [float(word) for word in daemon.said().split("rounds:")[1].split()[:3]]
        finally:
            end(daemon)
    first, last, milliseconds = figures
    tell(f"{ROUNDS} rounds: growth of the memory", last - first, GROWTH_MIB, "MiB")
    tell(f"{ROUNDS} rounds: memory", last, MEMORY_MIB, "MiB")
    print(f"{'each round':<62}{milliseconds:9.2f} ms", flush=True)


def tell(what: str, figure: float, bound: float, unit: str) -> None:
    verdict = "met" if figure <= bound else "NOT met"
    print(f"{what:<62}{figure:9.2f} {unit}   ≤ {bound:g}: {verdict}", flush=True)


if __name__ == "__main__":
    main()

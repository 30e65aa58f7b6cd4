"""Daemons as processes of their own over an estate in this process, and the servers' own log of what each writes.

The servers run in the test's process, so they can say for each write which process sent it, and which process held the
Leases at that moment.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.forked import Command, Forked, run
from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.kube.api.api import Api as KubernetesApi
from vgpuctl.sim.vcenter.wire.api import Api as VcenterApi
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate

WITHIN_S = 30.0
ACTING, LEADING = "vgpuctl", "vgpuctl-daemon"
NAMESPACE, BUDGETS = "vgpuctl", "poddisruptionbudgets"
#: vCenter's methods that change a VM.
MOVES = {"SuspendVM_Task", "PowerOnVM_Task", "PowerOffVM_Task", "ShutdownGuest", "ReconfigVM_Task"}
#: What is written to workers and workloads. The rest are Leases, questions, and what people read.
GUARDED = {"nodes", "pods", "deployments", "statefulsets", "jobs"}
#: The ledger. People write it, too.
LEDGER = "configmaps/vgpuctl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write that a server carried out. `pid`: its sender; `acting`, `leading`: the holders just before it."""

    at_s: float
    pid: int
    what: str
    acting: int
    leading: int


class ServersLog:
    """What both servers of an estate were sent, from now on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.writes: list[Write] = []
        self.world: Callable[[], World] | None = None
        patch.setattr(KubernetesApi, "answer", self._kubernetes(KubernetesApi.answer))
        patch.setattr(VcenterApi, "answer", self._vcenter(VcenterApi.answer))

    def of(self, pid: int, since_s: float = 0.0) -> list[Write]:
        return [each for each in self.writes if each.pid == pid and each.at_s >= since_s]

    def count(self, what: str) -> int:
        return sum(each.what.startswith(what) for each in self.writes)

    def unfenced(self) -> list[Write]:
        """The writes to workers whose sender did not hold the acting Lease."""
        return [each for each in self.writes if each.pid != each.acting and not each.what.endswith(LEDGER)]

    def _kubernetes(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        def logged(api: Any, request: Any, target: Any = None) -> Any:
            holders = self._holders() if request.method != "GET" else (0, 0)
            reply = answer(api, request, target)
            if request.method != "GET" and (GUARDED & set(request.path.split("/")) or request.path.endswith(LEDGER)):
                self._note(request.agent, f"{request.method} {'/'.join(request.path.split('/')[-3:])}", holders)
            return reply

        return logged

    def _vcenter(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        def logged(api: Any, request: Any, caller: Any, effect: Any) -> Any:
            holders = self._holders()
            reply = answer(api, request, caller, effect)
            if request.method in MOVES:
                self._note(caller.agent, request.method, holders)
            return reply

        return logged

    def _note(self, agent: str, what: str, holders: tuple[int, int]) -> None:
        pid = agent.partition("/")[2]
        if agent.startswith("vgpuctl/") and pid.isdigit():
            acting, leading = holders
            self.writes.append(Write(at_s=time.monotonic(), pid=int(pid), what=what, acting=acting, leading=leading))

    def _holders(self) -> tuple[int, int]:
        if self.world is None:
            return 0, 0
        return holder(self.world(), ACTING), holder(self.world(), LEADING)


def holder(world: World, name: str) -> int:
    """The process that holds this Lease by the server; 0 for none."""
    lease = world.kubernetes.store.get("leases", NAMESPACE, name)
    found = str((lease or {}).get("spec", {}).get("holderIdentity") or "")
    return int(found.split("/")[-2]) if found else 0


@dataclass
class Daemon:
    """A daemon that runs. `log`: the file that has what it says."""

    process: Forked
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        return self.log.read_text()

    def says(self, text: str) -> None:
        wait_until(lambda: self._alive() and text in self.said(), lambda: f"{text!r} was not said:\n{self.said()}")

    def _alive(self) -> bool:
        assert self.process.poll() is None, self.said()
        return True

    def ends(self, number: int = signal.SIGTERM) -> float:
        """Send a signal, and return how long the end took."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(WITHIN_S)
        return time.monotonic() - began


@dataclass
class Daemons:
    """Daemons and commands over one estate."""

    estate: Estate
    log: ServersLog
    lease_s: int = 15
    started: list[Daemon] = field(default_factory=list)

    def start(self) -> Daemon:
        path = self.estate.folder.parent / f"daemon-{len(self.started)}.log"
        with path.open("w") as out:
            process = Forked(self.command("daemon"), stdout=out, stderr=subprocess.STDOUT)
        self.started.append(Daemon(process, path))
        return self.started[-1]

    def run(self, *words: str) -> tuple[int, str]:
        code, out, err = run(self.command(*words), WITHIN_S)
        return code, out + err

    def begin(self, *words: str) -> Forked:
        """A command that runs while the test goes on."""
        return Forked(self.command(*words), stderr=subprocess.STDOUT)

    def departures(self) -> list[str]:
        """The hosts that are on their way between two shifts, by the ledger."""
        return self.estate.within(departures)

    def command(self, *words: str) -> Command:
        own = {"VGPUCTL_LEASE_SECONDS": str(self.lease_s), "HOME": str(self.estate.folder), "NO_COLOR": "1"}
        named = ("tests.support.named", "named_after_its_process")
        return Command(words=words, env={**self.estate.environment(), **own, "COLUMNS": "120"}, first=named)

    def wants(self, shift: str, *, other: str) -> None:
        """Write a timetable by which this shift began an hour ago, and the other one begins in eleven hours."""
        now = datetime.now(UTC)
        text = self.timetable({shift: now - timedelta(hours=1), other: now + timedelta(hours=11)})
        (self.estate.folder / "schedules" / "day-night.yaml").write_text(text)

    @staticmethod
    def timetable(starts: Mapping[str, datetime]) -> str:
        """Return a timetable of which each shift begins once a day, at this minute."""
        profiles = {"day": "v100-4q-4GB", "night": "v100-16q-16GB"}
        lines = [
            f'  {name}: {{starts: "{at.minute} {at.hour} * * *", profiles: [{profiles[name]}]}}'
            for name, at in starts.items()
        ]
        return "\n".join(["version: 1", "timezone: UTC", "shifts:", *lines, ""])

    def awake(self) -> set[str]:
        return self.estate.within(awake)

    def comes(self, workers: set[str]) -> None:
        """Wait until these workers are awake and nothing of a switch is left on any node."""
        wait_until(
            lambda: self.estate.within(lambda world: awake(world) == workers and not under_way(world)),
            lambda: f"{self.awake()}\n" + "\n".join(each.said() for each in self.started),
        )

    def holds(self, name: str) -> int:
        return self.estate.within(lambda world: holder(world, name))

    def begin_again(self) -> None:
        """Make the estate an ordinary day again, and forget what its servers were sent."""
        self.end()
        self.estate.reset()
        self.estate.within(without_budgets)
        self.log.writes.clear()

    def end(self) -> None:
        for each in self.started:
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGCONT)
                each.process.kill()
                each.process.wait(WITHIN_S)
        self.started.clear()


def awake(world: World) -> set[str]:
    return {vm.name for vm in world.estate.vms.values() if vm.power.value == "poweredOn"} - {"infra-1"}


def departures(world: World) -> list[str]:
    ledger = world.kubernetes.store.get("configmaps", NAMESPACE, "vgpuctl") or {}
    return [key for key in ledger.get("data") or {} if not key.startswith(".")]


def under_way(world: World) -> list[str]:
    """The nodes that still have the record of a switch, or a cordon although they are awake."""
    nodes, up = world.kubernetes.store.all("nodes"), awake(world)
    return [
        node["metadata"]["name"]
        for node in nodes
        if node["metadata"]["name"] in up
        and (node["spec"].get("unschedulable") or "vgpuctl.io/for" in node["metadata"].get("annotations", {}))
    ]


@contextmanager
def daemons(folder: Path, patch: pytest.MonkeyPatch, *, lease_s: int = 15, **paces: float) -> Iterator[Daemons]:
    """An ordinary day, without budgets: each eviction that is sent is then taken, so that it can be counted."""
    log = ServersLog(patch)
    with Estate(folder / "estate", "by-day", durations=paced(paces)) as estate:
        log.world = lambda: estate.world
        found = Daemons(estate, log, lease_s)
        found.begin_again()
        try:
            yield found
        finally:
            found.end()


def paced(paces: Mapping[str, float]) -> Durations:
    """Nearly no time, but for these."""
    durations = Durations.instant()
    for name, seconds in paces.items():
        setattr(durations, name, seconds)
    return durations


def without_budgets(world: World) -> None:
    for budget in world.kubernetes.store.all(BUDGETS):
        world.kubernetes.store.remove(BUDGETS, budget["metadata"]["namespace"], budget["metadata"]["name"])


def wait_until(true: Callable[[], bool], otherwise: Callable[[], str] = str, within_s: float = WITHIN_S) -> float:
    """Wait, and return how long it took."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() < began + within_s, otherwise()
        time.sleep(0.01)
    return time.monotonic() - began

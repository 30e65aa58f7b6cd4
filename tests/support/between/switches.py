"""A switch through an adversary: it ends lawfully, and the same command goes on from there once that one rests."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from tests.support.between.adversary import Adversary
from tests.support.between.estate import PAUSE_S, UNDISTURBED, WITHIN_S, Between, Seen, files, noted_errors
from tests.support.between.inside import Inside
from tests.support.between.messages import Asked, Lines, Reply
from tests.support.judge import Judge
from vgpuctl.engine.ports import Report
from vgpuctl.engine.runner import Progress
from vgpuctl.kube import journal, lease, ledger
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.lease import ActingLease
from vgpuctl.model.errors import StoppedError, VgpuctlError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import DONE, NOT_BEGUN
from vgpuctl.model.wish import Wish
from vgpuctl.observe.wiring import Connection
from vgpuctl.operations import Operation, unfinished_hosts
from vgpuctl.planning.wishes import former_wish, switch_wish
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.api.request import Request, target_of
from vgpuctl.sim.kube.objects import name_of
from vgpuctl.sim.vcenter.wire import requests
from vgpuctl.sim.vcenter.wire.api import Answer, Caller
from vgpuctl.sim.world import World
from vgpuctl.vsphere.property_filters import ObservationScope

NAMESPACE = KubernetesSettings().namespace

NIGHT, AWAKE_AT_NIGHT = "night", {"worker-5"}
SCOPE = ObservationScope(mmio=True, neighbours=True, drains=True, scales=True)
#: Virtual seconds that pass in each of real pauses: a suspend of two seconds takes 40 ms.
TICK_S, PASSES_S = 0.005, 0.25
#: How long a switch may take in virtual time, and how many times the same command is given once all is calm.
MOST_S, TRIES = 1200.0, 4
STARTS, STOPS, SUSPEND = {"PowerOnVM_Task"}, {"SuspendVM_Task", "ShutdownGuest", "PowerOffVM_Task"}, "SuspendVM_Task"


def switched(seed: int) -> Seen:
    """A switch to the night through the adversary of this seed; some are interrupted, some find the Lease taken."""
    with pytest.MonkeyPatch.context() as patch, noted_errors() as wrong:
        for module, name in ((lease, "LOOK_EVERY_S"), (ledger, "AGAIN_AFTER_S"), (journal, "PAUSE_S")):
            patch.setattr(module, name, 5 * PAUSE_S)
        one = Switching(seed, patch, wrong)
        try:
            with one.time_passes():
                one.play()
        finally:
            one.end()
        return Seen(seed, one.wrong + one.judge.broken, one.adversary.counts)


class Judged(Inside):
    """Servers at which the judge sees each write arrive."""

    def __init__(self, world: World, judge: Judge) -> None:
        super().__init__(world)
        self._judge = judge

    def _of_kubernetes(self, asked: Asked) -> Reply | Lines:
        answer = partial(super()._of_kubernetes, asked)
        with suppress(ApiError):
            target = target_of(asked.path)
            request = Request(method=asked.method, path=asked.path, body=asked.body)
            if asked.method == "PATCH" and target.kind.plural == "nodes":
                return self._judge.patches(target.name, request, answer)
            if target.subresource == "eviction":
                uid = request.json()["deleteOptions"]["preconditions"]["uid"]
                return self._judge.evicts(target.namespace, target.name, uid, answer)
        return answer()

    def _called(self, request: requests.Request, caller: Caller) -> Answer:
        if request.method in STARTS | STOPS:
            vm = self._world.center.subject(request.this)
            self._judge.powers(vm.name, by=self._judge.run)
            if request.method in STOPS:
                self._judge.stops(vm, suspended=request.method == SUSPEND)
        return super()._called(request, caller)


@dataclass
class VirtualClock:
    """The engine's time is the world's, so that deadlines and tasks keep in step."""

    clock: Clock

    def monotonic(self) -> float:
        return self.clock.now_s

    def utc(self) -> str:
        return self.clock.utc().strftime("%Y-%m-%dT%H:%M:%SZ")


class Silent:
    def progress(self, progress: Progress) -> None: ...

    def say(self, text: str) -> None: ...


class Switching(Between):
    """`judge`: what the writes did. Each fourth finds the Lease in another's hands, and is interrupted as it waits."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch, wrong: list[str]) -> None:
        self._timetable = files().timetable_of(NIGHT, None)
        self._patch, self._busy = patch, seed % 4 == 3
        self._chance, self._why = random.Random(f"switch {seed}"), ""
        super().__init__(Adversary(seed, lies=False), patch, seed, wrong)

    def servers(self) -> Inside:
        names = [name for group in self.world.inventory.groups for name in group.workers]
        self.judge = Judge(self.world, dict.fromkeys(names, self._timetable.conduct))
        # A pod that was sent off may be sent off again: how late its going is seen is the adversary's affair.
        self.judge.lag_s, self.judge.run = MOST_S, 1
        return Judged(self.world, self.judge)

    @contextmanager
    def time_passes(self) -> Iterator[None]:
        ended = threading.Event()

        def pass_on() -> None:
            while not ended.wait(TICK_S):
                with self.inside.changing() as world:
                    world.wait(PASSES_S)

        thread = threading.Thread(target=pass_on, name="time")
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(WITHIN_S)

    def play(self) -> None:
        if self._busy:
            self._find_the_lease_taken()
        else:
            self._switch(self.connect(SCOPE), self._chance.choice([None, None, self._chance.uniform(0.0, 0.3)]))
        self.rest()
        self._goes_on()

    def _find_the_lease_taken(self) -> None:
        other = ActingLease(self.connect(SCOPE, UNDISTURBED)._client, NAMESPACE, 1.0)
        other.acquire(lambda _: None, lambda: False)
        self._switch(self.connect(SCOPE), self._chance.uniform(0.02, 0.2))
        found = self.world.kubernetes.store.get("leases", NAMESPACE, "vgpuctl")
        holder = found["spec"]["holderIdentity"] if found else "no instance"
        if holder != other.identity:
            self.wrong.append(f"law 7: {holder} has taken the Lease of a living holder, {other.identity}")
        other.release()

    def _switch(self, connection: Connection, stop_after_s: float | None) -> Report | None:
        """As `vgpuctl switch night --yes`; None if it ended with one of our own errors."""
        try:
            self.open(connection)
            connection.follow()
            operation = Operation(world=self._world_of(connection), listener=Silent(), timetable=self._timetable.name)
            stop = threading.Timer(stop_after_s or 0.0, operation.interrupt)
            if stop_after_s is not None:
                stop.start()
            try:
                report = operation.carry_out(self._wish, former_wish)
            finally:
                stop.cancel()
        except VgpuctlError as error:
            if isinstance(error, StoppedError) and stop_after_s is None:
                self.wrong.append("it was stopped without an interrupt")
            self._why = error.message
            return None
        finally:
            connection.close()
        silent = (host for host in unfinished_hosts(report) if not host.why and host.end != NOT_BEGUN)
        self.wrong += [f"law 5: {host.host} {host.end}, and no word why" for host in silent]
        return report

    def _world_of(self, connection: Connection) -> Any:
        return replace(connection.world(), clock=VirtualClock(self.world.clock))

    def _wish(self, fleet: Fleet) -> Wish:
        return switch_wish(fleet, files().catalogue, self._timetable, NIGHT, self.world.clock.utc())

    def _goes_on(self) -> None:
        """Law 6: the same command again ends where it was to end."""
        for _ in range(TRIES):
            report = self._switch(self.connect(SCOPE, UNDISTURBED), None)
            if report is not None and all(host.end == DONE for host in report.hosts):
                break
        else:
            self.wrong.append(f"law 6: {TRIES} more switches did not get there: {report or self._why}")
        self.wrong += self._not_as_wanted()

    def _not_as_wanted(self) -> list[str]:
        with self.inside.changing() as world:
            awake = {vm.name for vm in world.estate.vms.values() if vm.power.value == "poweredOn"} - {"infra-1"}
            nodes = world.kubernetes.store.all("nodes")
            cordoned = {name_of(node) for node in nodes if node["spec"].get("unschedulable")}
        wrong = [] if awake == AWAKE_AT_NIGHT else [f"law 5: awake are {sorted(awake)}"]
        return wrong + ([f"law 5: {AWAKE_AT_NIGHT & cordoned} is cordoned"] if AWAKE_AT_NIGHT & cordoned else [])

"""The product's own engine drains one node of a cluster; of the vCenter around it there is only one VM, which obeys."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.fleets import CATALOGUE, QUARTER, card, timetable
from vgpuctl.basics.names import Names
from vgpuctl.engine.ports import Answer, Report, World
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.runner import Progress, Runner
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.actions import confirm, evict, patch_node
from vgpuctl.kube.client import Client
from vgpuctl.kube.stream import KubernetesStream
from vgpuctl.model.fleet import Fleet, Power, Task
from vgpuctl.model.hosts import Host
from vgpuctl.model.journal import Entry
from vgpuctl.model.ledger import Changes, Ledger
from vgpuctl.model.notice import Notice
from vgpuctl.model.profiles import Catalogue, WorkerRule
from vgpuctl.model.requests import Evict, PatchNode, Request, SuspendVm
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.model.wish import Wish
from vgpuctl.observe.fleet_builder import FleetBuilder
from vgpuctl.observe.wiring import SystemClock
from vgpuctl.operations import Preview, look_ahead
from vgpuctl.planning.wishes import switch_wish
from vgpuctl.vsphere.views import Outline, Vm


@dataclass
class OneVm:
    """All that vCenter has."""

    name: str
    power: Power = Power.ON

    def vms(self) -> dict[str, Vm]:
        outline = Outline(moid="vm-1", name=self.name, host="host-1")
        return {"vm-1": Vm(outline=outline, power=self.power, vgpus=(QUARTER,))}

    def hosts(self) -> dict[str, Host]:
        return {"host-1": Host(name="esx-1", cards=(card(0, "vm-1"),))}

    def datastores(self) -> dict[str, int]:
        return {}

    def tasks(self) -> dict[str, tuple[Task, ...]]:
        return {}

    def unreadable_by_id(self) -> dict[str, Unreadable]:
        return {}


class Ours:
    """The Lease is nobody else's here, nobody listens, and nothing is kept."""

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None: ...
    def held(self) -> bool:
        return True

    def lost(self) -> bool:
        return False

    def asked(self) -> str:
        return ""

    def release(self) -> None: ...
    def read(self) -> Ledger:
        return Ledger()

    def write(self, changed: Changes) -> None: ...
    def keep(self, entry: Entry) -> None: ...
    def close(self, entry: Entry) -> str:
        return ""

    def progress(self, progress: Progress) -> None: ...
    def say(self, text: str) -> None: ...


@dataclass
class Drainer:
    """As `vgpuctl switch` would with this one worker. `asleep_s`: when its VM was told to sleep, from the beginning."""

    kubeconfig: Path
    node: str
    options: DrainOptions
    asleep_s: float = 0.0
    evicted: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []
        self._began_s = time.monotonic()
        self._vcenter = OneVm(self.node)
        self.client = Client(KubernetesSettings(kubeconfig=str(self.kubeconfig)))
        self._kubernetes = KubernetesStream(self.client, self._changed, drains=True)
        choice = WorkerRule(profile="v100-4q-4GB", names=Names((self.node,)))
        self._builder = FleetBuilder(Catalogue(CATALOGUE.profiles, (choice,)))
        self._kubernetes.fill()

    def fleet(self) -> Fleet:
        fleet = self._builder.build(self._vcenter, self._kubernetes)
        return fleet if self._kubernetes.heard else replace(fleet, stale=("Kubernetes",))

    def refresh(self) -> None:
        self._kubernetes.refresh()

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(call)
        return lambda: self._listeners.remove(call)

    def _changed(self) -> None:
        for call in tuple(self._listeners):
            call()

    def send(self, request: Request) -> Answer:
        match request:
            case PatchNode():
                return patch_node(self.client, request)
            case Evict():
                self.evicted.append(request.pod.uid)
                return evict(self.client, request)
            case SuspendVm(first=first) if first is not None:
                confirm(self.client, first)
        self.asleep_s = time.monotonic() - self._began_s
        self._vcenter.power = Power.SUSPENDED
        self._changed()
        return Answer()

    def check(self, requests: Iterable[Request]) -> None:
        """The account may do everything."""

    def announce(self, notices: Sequence[Notice]) -> None:
        """Nobody listens."""

    def ahead(self) -> Preview:
        fleet = self.fleet()
        return look_ahead(fleet, self._wish(fleet))

    def _wish(self, fleet: Fleet) -> Wish:
        asleep = timetable(self.options, day=(self.node,), rest=())
        return switch_wish(fleet, self._builder.catalogue, asleep, "rest")

    def drain(self) -> Report:
        preview = self.ahead()
        assert not preview.refusals, preview.refusals
        self._kubernetes.follow()
        alone = Ours()
        world = World(observer=self, sender=self, lease=alone, clock=SystemClock(), ledger=alone, journal=alone)
        try:
            return Runner(world, Goal(wish=preview.wish), alone).run()
        finally:
            self._kubernetes.close()

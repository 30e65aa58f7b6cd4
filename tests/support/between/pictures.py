"""What the product sees of a changing world through an adversary: never old unsaid, and true once that one rests."""

from __future__ import annotations

import json
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.between.adversary import Adversary, Trouble
from tests.support.between.connections import Carry, lead_to
from tests.support.between.inside import Inside
from tests.support.between.likeness import differences
from tests.support.day import at_work, files_of
from vgpuctl.files import Files
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.model.errors import VgpuctlError
from vgpuctl.model.fleet import Fleet
from vgpuctl.observe import wiring
from vgpuctl.observe.wiring import Connection, Settings
from vgpuctl.sim.inventory import Durations, Inventory, default_inventory, default_shifts
from vgpuctl.sim.people import NotDone
from vgpuctl.sim.world import World
from vgpuctl.vsphere import stream
from vgpuctl.vsphere.property_filters import ObservationScope
from vgpuctl.vsphere.session import VcenterSettings
from vgpuctl.wire import retries

#: No picture may be wrong for longer without a word, and no call or thread may take longer.
WITHIN_S = 10.0
PAUSE_S = 0.002
#: A stream that is silent again says so without a change.
LOOK_S = 0.1
ROUNDS = 2
#: What a refresh does not ask for: no decision about a write depends on its last second.
NOT_ASKED = ("lease_renewed", "fleet.budgets", "disks")
DISTURBED, UNDISTURBED = "disturbed", "undisturbed"
SCOPES = (ObservationScope(), ObservationScope(mmio=True, neighbours=True, drains=True, scales=True))
ACTS = (
    *("cordon {0}", "uncordon {0}", "label {0} a=b", "label {0} a-", "delete-node {0}"),
    *("power-on {0}", "power-off {0}", "suspend {0}", "delete-pod {1}"),
)


def _small(inventory: Inventory) -> Inventory:
    """Two workers by day and one by night: what a picture costs is what pyVmomi reads."""
    gone = {"worker-3", "worker-4"}
    groups = tuple(
        replace(group, workers=tuple(name for name in group.workers if name not in gone)) for group in inventory.groups
    )
    vms = tuple(vm for vm in inventory.vms if vm.name not in gone)
    return replace(inventory, vms=vms, groups=groups, shifts=default_shifts(*groups))


INVENTORY = _small(at_work(default_inventory(1, 1)))


@dataclass
class Seen:
    """How one encounter ended. `wrong`: what must not be."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    counts: Counter[Trouble] = field(default_factory=Counter)


def shorten_pauses(patch: pytest.MonkeyPatch) -> None:
    """All in proportion: whoever waits for a stream looks more often than the stream pauses."""
    patch.setattr(retries, "FIRST_PAUSE_S", PAUSE_S)
    patch.setattr(retries, "LONGEST_PAUSE_S", PAUSE_S)
    patch.setattr(wiring, "REFRESH_AGAIN_AFTER_S", PAUSE_S)
    patch.setattr(stream, "CANCEL_EVERY_S", PAUSE_S / 5)


def encounter(seed: int) -> Seen:
    """People change a world, and the product looks at it through the adversary of this seed."""
    with pytest.MonkeyPatch.context() as patch, _noted_errors(patch) as errors:
        one = Encounter(seed, patch)
        try:
            one.play()
        finally:
            one.end()
        return Seen(seed, one.wrong + errors, one.adversary.counts)


class Encounter:
    """`wrong`: each picture that was old and did not say so, and each end that was late."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        self._chance = random.Random(f"people {seed}")
        # Half of the adversaries tell no lies: then each picture is compared, not only the last.
        self.adversary = Adversary(seed, lies=bool(seed % 2))
        self._strict = seed % 2 == 0
        self._world = World(INVENTORY, Durations(), seed=seed)
        self._world.wait(60)
        self._inside = Inside(self._world)
        self._scope = SCOPES[seed // 2 % 2]
        self.wrong: list[str] = []
        self._truth: Fleet | None = None
        shorten_pauses(patch)
        lead_to(self._way_to, patch)
        self._connection = self._connect(DISTURBED)
        self._threads = set(threading.enumerate())

    def play(self) -> None:
        self._open()
        self._connection.follow(departures=True)
        for number in range(ROUNDS):
            self._people_act()
            if self._strict and number:
                self._refresh(f"round {number + 1}")
            if self._strict:
                self._compare(f"round {number + 1}")
        self.rest()
        self._compare("the end", rested=True)

    def rest(self) -> None:
        self.adversary.rest()
        with self._inside.changing() as world:
            if self.adversary.lied_to_vcenters_client:
                world.center.sessions.end_all()

    def end(self) -> None:
        """All threads end, whatever they wait for."""
        self.adversary.rest()
        self._connection.close()
        self._inside.close()
        for thread in set(threading.enumerate()) - self._threads:
            thread.join(WITHIN_S)
            if thread.is_alive():
                self.wrong.append(f"the thread {thread.name} does not end")

    def _way_to(self, host: str) -> Carry:
        if host == UNDISTURBED:
            calm = Adversary(0)
            calm.rest()
            return lambda asked: calm.carried(asked, self._inside.answer)
        return lambda asked: self.adversary.carried(asked, self._inside.answer)

    def _connect(self, host: str) -> Connection:
        logins = self._world.logins
        vcenter = VcenterSettings(host=host, user=logins.user, password=logins.password)
        settings = Settings(vcenter=vcenter, kubernetes=KubernetesSettings(kubeconfig=_kubeconfig(host)))
        return Connection(settings, _files().catalogue, self._scope)

    def _open(self) -> None:
        """As a command does that is started again and again; at the latest a calm adversary lets it in."""
        until_s = time.monotonic() + WITHIN_S / 2
        while True:
            try:
                self._connection.open()
                return
            except VgpuctlError:
                time.sleep(PAUSE_S)
                if time.monotonic() > until_s:
                    self.rest()
                if time.monotonic() > until_s + WITHIN_S:
                    raise

    def _people_act(self) -> None:
        self._truth = None
        names = [name for group in self._world.inventory.groups for name in group.workers]
        for _ in range(self._chance.choice([2, 5, 8])):
            with self._inside.changing() as world:
                pods = [pod["metadata"]["name"] for pod in world.kubernetes.store.all("pods")]
                act = self._chance.choice(ACTS).format(self._chance.choice(names), self._chance.choice(pods))
                with suppress(NotDone):
                    world.people.act(act)
                world.wait(self._chance.choice([0.0, 0.5, 3.0, 20.0]))

    def _refresh(self, when: str) -> None:
        """What a switch does before it writes: once it returns, the picture is newer than the question."""
        try:
            self._connection.refresh()
        except VgpuctlError:
            return
        seen = self._connection.fleet()
        if not seen.stale:
            differ = (each for each in differences(seen, self._true()) if not any(word in each for word in NOT_ASKED))
            self.wrong += [f"{when}, refreshed: {each}" for each in differ]

    def _compare(self, when: str, *, rested: bool = False) -> None:
        """The picture is as a fresh one, or says that it is old; once the adversary rests only the former will do."""
        true, changed = self._true(), threading.Event()
        self._connection.on_change(changed.set)
        until_s = time.monotonic() + WITHIN_S
        while True:
            changed.clear()
            seen = self._connection.fleet()
            if (seen.stale and not rested) or not (differ := differences(seen, true)):
                return
            if time.monotonic() > until_s:
                self.wrong += [f"{when}: {each}" for each in differ]
                return
            changed.wait(LOOK_S)

    def _true(self) -> Fleet:
        """The picture of a fresh connection that nobody disturbs. The world stands still until people act again."""
        if self._truth is None:
            connection = self._connect(UNDISTURBED)
            connection.open()
            self._truth = connection.fleet()
            connection.close()
        return self._truth


@cache
def _files() -> Files:
    return files_of(INVENTORY)


@cache
def _kubeconfig(host: str) -> str:
    """Read once for all encounters: YAML takes as long as half a picture."""
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": {"server": f"http://{host}:1"}}],
        "users": [{"name": "me", "user": {}}],
    }
    path = Path(tempfile.mkdtemp()) / "kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)


@contextmanager
def _noted_errors(patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Whatever ends a thread is noted."""
    found: list[str] = []

    def note(args: Any) -> None:
        found.append(f"{args.thread.name} ended with {args.exc_type.__name__}: {args.exc_value}")

    patch.setattr(threading, "excepthook", note)
    yield found

"""A small world behind an adversary, and connections of the product to it: disturbed and undisturbed ones."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.between.adversary import Adversary
from tests.support.between.connections import Carry, lead_to
from tests.support.between.inside import Inside
from tests.support.between.troubles import Trouble
from tests.support.day import at_work, files_of
from vgpuctl.files import Files
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.model.errors import VgpuctlError
from vgpuctl.observe import wiring
from vgpuctl.observe.wiring import Connection, Settings
from vgpuctl.sim.inventory import Durations, Inventory, default_inventory, default_shifts
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
#: How often a listener raises an error of its own.
FAILS = 0.02
DISTURBED, UNDISTURBED = "disturbed", "undisturbed"


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


class Between:
    """`inside`: the world's servers. `wrong`: what must not be. After `end` no thread of the product is left."""

    def __init__(self, adversary: Adversary, patch: pytest.MonkeyPatch, seed: int, wrong: list[str]) -> None:
        self.adversary, self.wrong = adversary, wrong
        self.world = World(INVENTORY, Durations(), seed=seed)
        self.world.wait(60)
        self.inside = self.servers()
        self._connections: list[Connection] = []
        self._threads = set(threading.enumerate())
        shorten_pauses(patch)
        lead_to(self._way_to, patch)

    def servers(self) -> Inside:
        return Inside(self.world)

    def connect(self, scope: ObservationScope, host: str = DISTURBED) -> Connection:
        logins = self.world.logins
        vcenter = VcenterSettings(host=host, user=logins.user, password=logins.password)
        settings = Settings(vcenter=vcenter, kubernetes=KubernetesSettings(kubeconfig=kubeconfig(host)), lease_s=1.0)
        self._connections.append(Connection(settings, files().catalogue, scope))
        return self._connections[-1]

    def open(self, connection: Connection) -> None:
        """As a command does that is started again and again; at the latest a calm adversary lets it in."""
        until_s = time.monotonic() + WITHIN_S / 2
        while True:
            try:
                connection.open()
                return
            except VgpuctlError:
                time.sleep(PAUSE_S)
                if time.monotonic() > until_s:
                    self.rest()
                if time.monotonic() > until_s + WITHIN_S:
                    raise

    def rest(self) -> None:
        self.adversary.rest()
        with self.inside.changing() as world:
            if self.adversary.lied_to_vcenters_client:
                world.center.sessions.end_all()

    def end(self) -> None:
        """End all threads, waiting ones too."""
        self.adversary.rest()
        for connection in self._connections:
            connection.close()
        self.inside.close()
        for thread in set(threading.enumerate()) - self._threads:
            thread.join(WITHIN_S)
            if thread.is_alive():
                self.wrong.append(f"the thread {thread.name} does not end")
        self.inside.forget()

    def _way_to(self, host: str) -> Carry:
        if host == UNDISTURBED:
            calm = Adversary(0)
            calm.rest()
            return lambda asked: calm.carried(asked, self.inside.answer)
        return lambda asked: self.adversary.carried(asked, self.inside.answer)


def shorten_pauses(patch: pytest.MonkeyPatch) -> None:
    """Shorten all pauses in proportion: a wait for a stream still looks more often than the stream pauses."""
    patch.setattr(retries, "FIRST_PAUSE_S", PAUSE_S)
    patch.setattr(retries, "LONGEST_PAUSE_S", PAUSE_S)
    patch.setattr(wiring, "REFRESH_AGAIN_AFTER_S", PAUSE_S)
    patch.setattr(stream, "CANCEL_EVERY_S", PAUSE_S / 5)


@cache
def files() -> Files:
    return files_of(INVENTORY)


@cache
def kubeconfig(host: str) -> str:
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
def noted_errors() -> Iterator[list[str]]:
    """Note each error that ends a thread."""
    found: list[str] = []

    def note(args: Any) -> None:
        found.append(f"{args.thread.name} ended with {args.exc_type.__name__}: {args.exc_value}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "excepthook", note)
        yield found

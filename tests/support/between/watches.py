"""One list and its watch through an adversary, in one thread: all that is done to them follows from the seed."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.support.between.adversary import WINDOW_S, Adversary
from tests.support.between.connections import lead_to
from tests.support.between.estate import DISTURBED, FAILS, INVENTORY, Seen, kubeconfig
from tests.support.between.inside import Inside
from tests.support.between.messages import Asked, Lines, Reply
from tests.support.between.troubles import Trouble
from tests.support.clients import kubectl
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client
from vgpuctl.kube.reflector import Kind, Reflector
from vgpuctl.model.errors import VgpuctlError
from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.world import World
from vgpuctl.wire import retries

PATH, NAMES, STEPS = "/api/v1/namespaces/default/configmaps", ("a", "b", "c"), 12
#: A replay of any seed asks less often. Beyond it, the stream would never come to rest.
MOST_ASKED = 1000
EMPTY = replace(INVENTORY, vms=(), groups=(), shifts=(), workloads=())


def watched(seed: int) -> Seen:
    """Objects change, and a list with its watch follows them through the adversary of this seed."""
    with pytest.MonkeyPatch.context() as patch:
        one = Watching(seed, patch)
        one.play()
        return Seen(seed, one.wrong, one.adversary.counts)


class Watching:
    """`wrong`: what was old and not said to be, and what ended the stream."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        # As in pictures: without lies, each state is compared, not only the last.
        self._strict = seed % 2 == 0
        self.adversary, self.wrong = Adversary(seed, lies=not self._strict), list[str]()
        # No time passes in one thread: things change instead.
        self.adversary.pause = lambda _: self._change()
        self._chance, self._steps, self._asked, self._changes = random.Random(f"changes {seed}"), STEPS, 0, 0
        self._world = World(EMPTY, Durations(), seed=seed)
        self._inside = Inside(self._world)
        lead_to(lambda _: partial(self.adversary.carried, answer=self._answer), patch)
        for name in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S"):
            patch.setattr(retries, name, 0.0)
        self._client = Client(KubernetesSettings(kubeconfig=kubeconfig(DISTURBED)))
        self._reflector = Reflector(self._client, Kind(PATH, _view), self._fail_at_times)

    def play(self) -> None:
        try:
            # The thread's own loop, in this thread.
            self._reflector._keep_listening()
        except Exception as error:
            self.wrong.append(f"the stream ended with {type(error).__name__}: {error}")
        self._inside.forget()

    def _fail_at_times(self) -> None:
        """A listener with a mistake in it, until the adversary rests."""
        if not self.adversary.resting and self._chance.random() < FAILS:
            raise ZeroDivisionError("a listener's own mistake")

    def _answer(self, asked: Asked) -> Reply | Lines:
        self._asked += 1
        if self._asked > MOST_ASKED:
            self.wrong.append("it asks again and again")
            self._reflector.close()
        found = self._inside.answer(asked)
        return Lines(partial(self._take, found), found.close) if isinstance(found, Lines) else found

    def _take(self, lines: Lines, within_s: float) -> list[bytes] | None:
        """What has come. If nothing has, all that came before is read, and something happens."""
        if (came := lines.take(0.0)) == [] and within_s != WINDOW_S:
            self._happens()
            came = lines.take(0.0)
        return None if self._reflector._closed.is_set() else came

    def _happens(self) -> None:
        if self._strict or self.adversary.resting:
            self._compare("heard")
        if self.adversary.resting:
            if not self._reflector.heard:
                self.wrong.append("it is not heard, and nothing disturbs it")
            self._reflector.close()
            return
        self._steps -= 1
        for _ in range(self._chance.choice([1, 2, 4])):
            self._change()
        if not self._steps:
            self.adversary.rest()
        elif self._chance.random() < 0.3:
            self._refresh()

    def _change(self) -> None:
        name = self._chance.choice(NAMES)
        self._changes += 1
        body = {"metadata": {"name": name}, "data": {"number": str(self._changes)}}
        known = self._world.kubernetes.store.get("configmaps", "default", name) is not None
        method = self._chance.choice(["PUT", "DELETE"]) if known else "POST"
        with self._inside.changing() as world:
            kubectl(world.api, method, f"{PATH}/{name}" if known else PATH, None if method == "DELETE" else body)

    def _refresh(self) -> None:
        before = self._changes, self.adversary.counts[Trouble.STALE]
        # Another request, whose reply may then be mixed up with the list.
        with suppress(VgpuctlError):
            self._client.get("/api/v1/nodes")
        try:
            self._reflector.refresh()
        except VgpuctlError:
            return
        # An earlier list of the same version that is known is right in form: no client finds out that it is old.
        if self._strict and (self._changes, self.adversary.counts[Trouble.STALE]) == before:
            self._compare("refreshed")

    def _compare(self, when: str) -> None:
        found = self._world.kubernetes.store.all("configmaps")
        true = sorted(_view(each) for each in found if each["metadata"]["namespace"] == "default")
        if self._reflector.heard and (seen := sorted(self._reflector.objects())) != true:
            self.wrong.append(f"{when}, and shows {seen} instead of {true}")


def _view(item: Any) -> tuple[str, str]:
    return item["metadata"]["name"], item["metadata"]["resourceVersion"]

"""What the product sees of a changing world through an adversary: never old unsaid, and true once that one rests."""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress

import pytest

from tests.support.between.adversary import Adversary
from tests.support.between.estate import FAILS, LOOK_S, UNDISTURBED, WITHIN_S, Between, Seen, noted_errors
from tests.support.between.likeness import differences
from tests.support.between.troubles import Trouble
from vgpuctl.model.errors import VgpuctlError
from vgpuctl.model.fleet import Fleet
from vgpuctl.sim.people import NotDone
from vgpuctl.vsphere.property_filters import ObservationScope

ROUNDS = 2
#: What a refresh does not ask for: no decision about a write depends on its last second.
NOT_ASKED = ("lease_renewed", "fleet.budgets", "disks")
SCOPES = (ObservationScope(), ObservationScope(mmio=True, neighbours=True, drains=True, scales=True))
ACTS = (
    *("cordon {0}", "uncordon {0}", "label {0} a=b", "label {0} a-", "delete-node {0}"),
    *("power-on {0}", "power-off {0}", "suspend {0}", "delete-pod {1}"),
)


def encounter(seed: int) -> Seen:
    """People change a world, and the product looks at it through the adversary of this seed."""
    with pytest.MonkeyPatch.context() as patch, noted_errors() as wrong:
        one = Encounter(seed, patch, wrong)
        try:
            one.play()
        finally:
            one.end()
        return Seen(seed, one.wrong, one.adversary.counts)


class Encounter(Between):
    """`wrong`: each picture that was old and did not say so, and each end that was late."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch, wrong: list[str]) -> None:
        # Half of the adversaries tell no lies: then each picture is compared, not only the last.
        self._strict = seed % 2 == 0
        super().__init__(Adversary(seed, lies=not self._strict), patch, seed, wrong)
        self._chance, self._listeners_chance = random.Random(f"people {seed}"), random.Random(f"listener {seed}")
        self._scope = SCOPES[seed // 2 % 2]
        self._truth: Fleet | None = None
        self._connection = self.connect(self._scope)

    def play(self) -> None:
        self.open(self._connection)
        self._connection.on_change(self._fail_at_times)
        self._connection.follow(ledger=True)
        for _ in range(ROUNDS):
            self._people_act()
        if self._strict:
            # What is compared with is another whole look: once is enough, and half of the cost.
            self._refresh("refreshed")
            self._compare("before the end")
        self.rest()
        self._compare("the end", rested=True)

    def _fail_at_times(self) -> None:
        """A listener with a mistake in it, until the adversary rests."""
        if not self.adversary.resting and self._listeners_chance.random() < FAILS:
            raise ZeroDivisionError("a listener's own mistake")

    def _people_act(self) -> None:
        self._truth = None
        names = [name for group in self.world.inventory.groups for name in group.workers]
        for _ in range(self._chance.choice([2, 5, 8])):
            with self.inside.changing() as world:
                pods = [pod["metadata"]["name"] for pod in world.kubernetes.store.all("pods")]
                act = self._chance.choice(ACTS).format(self._chance.choice(names), self._chance.choice(pods))
                with suppress(NotDone):
                    world.people.act(act)
                world.wait(self._chance.choice([0.0, 0.5, 3.0, 20.0]))

    def _refresh(self, when: str) -> None:
        """What a switch does before it writes: once it returns, the picture is newer than the question."""
        before = self.adversary.counts[Trouble.STALE]
        try:
            self._connection.refresh()
        except VgpuctlError:
            return
        seen = self._connection.fleet()
        # An earlier list of the same version that is known is right in form: no client finds out that it is old.
        if not seen.stale and self.adversary.counts[Trouble.STALE] == before:
            differ = (each for each in differences(seen, self._true()) if not any(word in each for word in NOT_ASKED))
            self.wrong += [f"{when}: {each}" for each in differ]

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
            if self.wrong:
                return
            if time.monotonic() > until_s:
                self.wrong += [f"{when}: {each}" for each in differ]
                return
            changed.wait(LOOK_S)

    def _true(self) -> Fleet:
        """The picture of a fresh, undisturbed connection. The world stands still until people act again."""
        if self._truth is None:
            connection = self.connect(self._scope, UNDISTURBED)
            connection.open()
            self._truth = connection.fleet()
            connection.close()
        return self._truth

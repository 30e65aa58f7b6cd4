"""A vCenter that takes any lawful card and place, when it likes, and whose books may lag: a plan played against it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from tests.support.fleets import with_worker
from tests.support.overfull import overfull
from tests.support.racks import Chips
from tests.support.reckoning import Chip, Sitting
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.plan import Step
from vgpuctl.model.requests import PowerOnVm
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.releases import may_start
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.planner import plan
from vgpuctl.planning.steps import PowerOn, ShutDown, Suspend

HOST = "esx-1"


@dataclass
class Adversary:
    """`chips` is the truth; `fleet` what is seen of it. `starting`: starts that were sent and are not decided yet."""

    fleet: Fleet
    wish: Wish
    chips: list[Chip]
    chance: random.Random
    starting: list[Step] = field(default_factory=list)

    def play(self) -> None:
        """Until nothing is left to do. That nothing can be done is a failure."""
        while plan(self.fleet, self.wish):
            moves: list[Callable[[], object]] = [partial(self.send, step) for step in self.may_be_sent()]
            moves += [partial(self.decide, step) for step in self.starting]
            if self.chance.random() < 0.3 or not moves:
                moves = [self.tell] if not self.told() or moves else []
            assert moves, f"stuck: {sorted(plan(self.fleet, self.wish).ids)}"
            self.chance.choice(moves)()

    def may_be_sent(self) -> list[Step]:
        out = {step.subject for step in self.starting}
        return [s for s in plan(self.fleet, self.wish).ready() if s.subject not in out and self._may(s, out)]

    def _may(self, step: Step, out: set[str]) -> bool:
        if not isinstance(step, PowerOn):
            return True
        return not may_start(self.fleet, self.wish, self.fleet.worker(step.worker), frozenset(out))

    def send(self, step: Step) -> None:
        if isinstance(step, PowerOn):
            assert not broken_by(PowerOnVm(worker=step.worker, vm=""), self.fleet)
            self.starting.append(step)
            return
        if isinstance(step, Suspend | ShutDown):
            self.chips = [chip.without(step.worker) for chip in self.chips]
        self.fleet = step.applied_to(self.fleet)

    def decide(self, step: Step) -> None:
        """One vGPU after another, in any order, on any card that has room, at any place."""
        vgpus = list(self.fleet.worker(step.subject).vgpus)
        self.chance.shuffle(vgpus)
        for vgpu in vgpus:
            ways = [(index, start) for index, chip in enumerate(self.chips) for start in chip.starts_for(vgpu)]
            assert ways, f"no room for {step.subject} ({vgpu}) beside {self.chips}"
            index, start = self.chance.choice(ways)
            self.chips[index] = self.chips[index].with_one_more(Sitting(step.subject, vgpu, start))
        self.starting.remove(step)
        self.fleet = with_worker(self.fleet, step.subject, power=Power.ON)

    def tell(self) -> None:
        """The books are brought up to date."""
        host = self.fleet.hosts[HOST]
        cards = tuple(replace(c, holds=_names(chip)) for c, chip in zip(host.cards, self.chips, strict=True))
        self.fleet = replace(self.fleet, hosts={HOST: replace(host, cards=cards)})
        assert overfull(self.fleet) == []

    def told(self) -> bool:
        return [card.holds for card in self.fleet.hosts[HOST].cards] == [_names(chip) for chip in self.chips]


def _names(chip: Chip) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sitting.vm for sitting in chip.sitting))


def forgetful(chips: Chips, forgotten: set[str]) -> Chips:
    """The same cards in books that do not name these VMs yet."""
    return tuple(replace(chip, sitting=tuple(s for s in chip.sitting if s.vm not in forgotten)) for chip in chips)

"""Fleets with a provision at random, and a vCenter that chooses cards as badly as it may."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import strategies as st

from tests.support.fleets import HALF, MOST, PROFILES, QUARTER, card, fleet, node, pod, some_pods, worker
from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.hosts import Card, Host
from vgpuctl.model.plan import Step
from vgpuctl.model.profiles import NONE, Catalogue, Profile
from vgpuctl.model.record import ASLEEP, Record
from vgpuctl.model.wish import Wish
from vgpuctl.planning.steps import PowerOn, ShutDown
from vgpuctl.planning.wishes import Provisioning, provision_wish

CATALOGUE = Catalogue(
    {
        **PROFILES,
        "two-quarters": Profile("two-quarters", (QUARTER, QUARTER)),
        "two-halves": Profile("two-halves", (HALF, HALF)),
    }
)
WANTED = (*CATALOGUE.profiles, NONE.name)


@st.composite
def fleets_and_provisions(draw: st.DrawFn, max_hosts: int = 2, max_cards: int = 2) -> tuple[Fleet, Wish]:
    """Workers on, off and suspended, each wanting some profile. That of its card is the likeliest."""
    workers: list[Worker] = []
    cards: dict[str, list[Card]] = {}
    for number in range(draw(st.integers(1, max_hosts))):
        host = f"esx-{number + 1}"
        cards[host], found = _host(draw, host, draw(st.integers(1, max_cards)))
        workers += found
    some = fleet(*workers, cards=cards)
    return some, replace(wish_for(some, draw(st.integers(1, 4))), drain_first=some_pods(draw, some))


def wish_for(some: Fleet, at_most: int) -> Wish:
    return provision_wish(some, CATALOGUE, Provisioning(max_unavailable=at_most))


def _host(draw: st.DrawFn, host: str, count: int) -> tuple[list[Card], list[Worker]]:
    cards, workers = [], []
    for number in range(count):
        vgpu, wanted = draw(st.sampled_from(tuple(MOST))), draw(st.sampled_from(WANTED))
        names = [f"{host}-{number}{n}" for n in range(draw(st.integers(0, MOST[vgpu])))]
        workers += [_worker(draw, name, Power.ON, (vgpu,), wanted) for name in names]
        cards.append(card(number, *names))
    for number in range(draw(st.integers(0, 2))):
        power = draw(st.sampled_from(Power))
        vgpus = () if power is Power.ON else CATALOGUE.profiles[draw(st.sampled_from(tuple(CATALOGUE.profiles)))].vgpus
        workers.append(_worker(draw, f"{host}-x{number}", power, vgpus, draw(st.sampled_from(WANTED))))
    return cards, workers


def _worker(draw: st.DrawFn, name: str, power: Power, vgpus: tuple[str, ...], wanted: str) -> Worker:
    kept = CATALOGUE.carried(vgpus) or NONE.name
    inside = node(name, pods=(pod(f"{name}-p", name),) if draw(st.booleans()) else ())
    if power is not Power.ON and draw(st.booleans()):
        record = Record(wish="night", state=ASLEEP, since="", cordoned=True, lease="L1", heartbeat="H0")
        inside = replace(inside, unschedulable=True, record=record)
    profile = draw(st.sampled_from((kept, wanted, draw(st.sampled_from(WANTED)))))
    locked = draw(st.sampled_from((True, True, True, False)))
    return worker(
        name,
        host=name.rpartition("-")[0],
        power=power,
        vgpus=vgpus,
        profile=profile,
        node=inside,
        memory_locked=locked or power is Power.SUSPENDED,
    )


class Vcenter:
    """Where everybody sits, and where those come to sit who start: on any card that takes them."""

    def __init__(self, some: Fleet) -> None:
        self.seats = {
            (host.name, index): [(name, vgpu) for name in card.holds for vgpu in some.worker(name).vgpus]
            for host in some.hosts.values()
            for index, card in enumerate(host.cards)
        }

    def after(self, step: Step, some: Fleet, chance: random.Random) -> Fleet:
        """What the world looks like after it, the hosts' books included."""
        later, changed = step.applied_to(some), some.worker(step.subject)
        if isinstance(step, ShutDown):
            for held in self.seats.values():
                held[:] = [(name, vgpu) for name, vgpu in held if name != step.worker]
        if isinstance(step, PowerOn):
            for vgpu in chance.sample(changed.vgpus, len(changed.vgpus)):
                chance.choice(self._free(changed, vgpu)).append((changed.name, vgpu))
        return replace(later, hosts={name: self._books(later, name) for name in later.hosts})

    def _free(self, changed: Worker, vgpu: str) -> list[list[tuple[str, str]]]:
        free = [
            held
            for (host, _), held in self.seats.items()
            if host == changed.host and len(held) < MOST[vgpu] and all(other == vgpu for _, other in held)
        ]
        assert free, f"{changed.name} was started, and no card takes its {vgpu}: {self.seats}"
        return free

    def _books(self, some: Fleet, host: str) -> Host:
        before = some.hosts[host]
        holds = (
            tuple(dict.fromkeys(name for name, _ in self.seats[host, index])) for index in range(len(before.cards))
        )
        return replace(before, cards=tuple(replace(c, holds=h) for c, h in zip(before.cards, holds, strict=True)))

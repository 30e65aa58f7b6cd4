"""What was not refused ends, whatever cards vCenter chooses and however late its books are."""

from __future__ import annotations

import random

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.adversary import HOST, Adversary, forgetful
from tests.support.fleets import PROFILES, worker
from tests.support.racks import EXACT, PLACED, Chips, cards_of, few_types, racks, vms
from vgpuctl.model.fleet import Fleet, Power, Stranger, Worker
from vgpuctl.model.hosts import Host
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.wish import Wish, WorkerWish
from vgpuctl.operations import look_ahead
from vgpuctl.planning.planner import plan

Case = tuple[Fleet, Wish, Chips]


@st.composite
def hosts_and_wishes(draw: st.DrawFn, kinds: tuple[tuple[str, str], ...], most: int) -> Case:
    """One host with some who run (workers and strangers, not all in its books) and some who are off."""
    chips = draw(racks(kinds, most))
    assume(any(few_types(chip) for chip in chips))
    running = [sitting for chip in chips for sitting in chip.sitting]
    strangers = {s.vm for s in running if draw(st.integers(0, 4)) == 0}
    forgotten = {s.vm for s in running if draw(st.integers(0, 4)) == 0}
    workers = [_worker(s.vm, (s.type,), Power.ON) for s in running if s.vm not in strangers]
    off = draw(vms(chips, most=3))
    workers += [_worker(f"new-{n}", vgpus, draw(st.sampled_from(list(Power)[1:]))) for n, vgpus in enumerate(off)]
    others = {s.vm: Stranger(name=s.vm, host=HOST, vgpus=(s.type,)) for s in running if s.vm in strangers}
    some = Fleet(
        hosts={HOST: Host(name=HOST, cards=cards_of(forgetful(chips, forgotten)))},
        workers={w.name: w for w in workers},
        strangers=others,
    )
    return some, _wish(draw, some, chips), chips


def _worker(name: str, vgpus: tuple[str, ...], power: Power) -> Worker:
    return worker(name, power=power, vgpus=vgpus)


def _wish(draw: st.DrawFn, some: Fleet, chips: Chips) -> Wish:
    wishes = {}
    for each in some.workers.values():
        if draw(st.integers(0, 5)) == 0:
            continue
        change = each.power is not Power.SUSPENDED and draw(st.integers(0, 3)) == 0
        vgpus = draw(vms(chips, most=1))[0] if change else None
        wishes[each.name] = WorkerWish(vgpus=vgpus, change=change, awake=draw(st.booleans()))
    return Wish(name="shift", catalogue=Catalogue(PROFILES), workers=wishes)


def plays(case: Case, chance: random.Random) -> None:
    some, wish, chips = case
    preview = look_ahead(some, wish)
    assume(preview.plan and not preview.refusals)
    game = Adversary(some, preview.wish, list(chips), chance)
    game.play()
    assert not plan(game.fleet, wish)
    for name, mine in wish.workers.items():
        after = game.fleet.worker(name)
        assert after.on == mine.awake
        assert mine.vgpus is None or sorted(after.vgpus) == sorted(mine.vgpus)


@given(hosts_and_wishes(EXACT, most=3), st.randoms(use_true_random=False))
def test_what_is_not_refused_ends_whatever_cards_vcenter_chooses(case: Case, chance: random.Random) -> None:
    plays(case, chance)


@given(hosts_and_wishes((*PLACED, ("V100-16", "sameSize")), most=2), st.randoms(use_true_random=False))
def test_so_it_does_where_places_count(case: Case, chance: random.Random) -> None:
    plays(case, chance)

"""When a start may be sent, and which wishes a host has no room for: the cases that a random search meets seldom."""

from __future__ import annotations

from dataclasses import replace

from tests.support.fleets import HALF, PROFILES, QUARTER, WHOLE, card, fleet, worker
from tests.support.overfull import overfull
from vgpuctl.model.fleet import Fleet, Stranger
from vgpuctl.model.hosts import Card, CardMode, Host, Policy
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.requests import PowerOnVm
from vgpuctl.model.wait import Reason, Wait
from vgpuctl.model.wish import Wish, WorkerWish
from vgpuctl.planning.cards.policy import policy_trap
from vgpuctl.planning.cards.releases import may_start
from vgpuctl.planning.checks.refusals import refusals
from vgpuctl.planning.laws import broken_by

SHOWS = Wait(Reason.LAST_START)
WAITS = Wait(Reason.CARD)


def wish(change: dict[str, tuple[str, ...]] | None = None, /, **awake: bool) -> Wish:
    wanted = change or {}
    workers = {n: WorkerWish(awake=a, change=n in wanted, vgpus=wanted.get(n)) for n, a in awake.items()}
    return Wish(name="night", catalogue=Catalogue(PROFILES), workers=workers)


def host_of(some: Fleet, **changes: object) -> Fleet:
    return replace(some, hosts={"esx-1": replace(some.hosts["esx-1"], **changes)})  # type: ignore[arg-type]


def test_vcenter_need_not_seat_two_starts_in_the_order_in_which_it_was_asked() -> None:
    """The whole one is under way and needs the empty card: the quarter could yet be seated there before it."""
    some = fleet(
        worker("stays"),
        worker("whole", WHOLE, on=False),
        worker("quarter", on=False),
        cards={"esx-1": [card(0, "stays"), card(1)]},
    )
    asked = wish(whole=True, quarter=True)
    assert may_start(some, asked, some.worker("quarter"), frozenset({"whole"})) == SHOWS
    assert may_start(some, asked, some.worker("whole")) is None


def test_a_card_that_is_being_left_may_be_free_when_vcenter_chooses() -> None:
    some = fleet(
        worker("leaves", WHOLE),
        worker("stays"),
        worker("quarter", on=False),
        worker("whole", WHOLE, on=False),
        cards={"esx-1": [card(0, "leaves"), card(1, "stays")]},
    )
    asked = wish(leaves=False, quarter=True, whole=True)
    assert may_start(some, asked, some.worker("quarter")) == WAITS
    assert may_start(some, asked, some.worker("whole")) == WAITS, "nothing starts on a card that is still taken"


def test_a_start_does_not_wait_for_those_whose_leaving_changes_nothing() -> None:
    some = fleet(
        worker("leaves"),
        worker("quarter", on=False),
        worker("whole", WHOLE, on=False),
        cards={"esx-1": [card(0, "leaves"), card(1)]},
    )
    asked = wish(leaves=False, quarter=True, whole=True)
    assert may_start(some, asked, some.worker("quarter")) is None


def test_who_is_in_no_books_yet_may_sit_on_any_card() -> None:
    some = fleet(
        worker("known"),
        worker("unseen"),
        worker("whole", WHOLE, on=False),
        cards={"esx-1": [card(0, "known"), card(1)]},
    )
    asked = wish(whole=True)
    assert may_start(some, asked, some.worker("whole")) == SHOWS
    (refusal,) = refusals(some, asked)
    assert "vCenter chooses the cards" in refusal.message
    assert "esx-1 does not say yet on which card each of its VMs sits" in refusal.details


def test_many_of_one_kind_start_at_once() -> None:
    names = [f"w{n}" for n in range(8)]
    some = fleet(*(worker(n, on=False) for n in names), cards={"esx-1": [card(0), card(1)]})
    asked = wish(**dict.fromkeys(names, True))
    assert may_start(some, asked, some.worker("w7"), frozenset(names[:7])) is None


def test_who_comes_back_with_other_devices_is_reckoned_with_those() -> None:
    some = fleet(worker("w1"), worker("w2"), cards={"esx-1": [card(0, "w1", "w2")]})
    assert refusals(some, wish({"w1": (HALF,), "w2": (HALF,)}, w1=True, w2=True)) == ()
    (refusal,) = refusals(some, wish({"w1": (HALF,)}, w1=True))
    assert refusal.details == ("0000:3b:00.0 keeps w2 (grid_v100-4q)",)


def test_a_vm_with_two_vgpus_needs_both_seats() -> None:
    pair = worker("pair", on=False, vgpus=(WHOLE, WHOLE))
    some = fleet(pair, worker("stays"), cards={"esx-1": [card(0), card(1, "stays")]})
    (refusal,) = refusals(some, wish(pair=True))
    assert refusal.message == "night cannot begin on esx-1: no card will have room for pair."
    assert "law 2:" in broken_by(PowerOnVm(worker="pair", vm=""), some)
    assert refusals(some, wish(pair=True, stays=False)) == ()


def test_a_type_of_another_board_is_named_with_the_cards_that_are_there() -> None:
    some = fleet(worker("w1", "nvidia_a40-24q", on=False))
    (refusal,) = refusals(some, wish(w1=True))
    assert refusal.details == ("w1 needs nvidia_a40-24q, which none of these can hold: V100-16 (same size)",)


def test_a_stranger_of_whom_nothing_is_known_may_fill_its_card() -> None:
    some = fleet(worker("w1", on=False), cards={"esx-1": [card(0, "vm-77")]})
    (refusal,) = refusals(some, wish(w1=True))
    assert refusal.details == ("0000:3b:00.0 keeps vm-77 (unknown vGPU)",)


def test_the_policys_trap_is_named_where_it_has_snapped() -> None:
    some = fleet(
        worker("q1"), worker("q2"), worker("whole", WHOLE, on=False), cards={"esx-1": [card(0, "q1"), card(1, "q2")]}
    )
    (refusal,) = refusals(some, wish(whole=True, q1=True, q2=True))
    assert refusal.details[-1] == (
        "esx-1 spreads VMs over its 2 cards (policy performance): grid_v100-4q may lock all of them to its size, and "
        "then grid_v100-16q starts nowhere until a card is empty"
    )


def test_who_can_fall_into_the_policys_trap() -> None:
    two = Host(name="esx-1", cards=(card(0), card(1)))
    many, few = [(QUARTER,), (QUARTER,), (WHOLE,)], [(QUARTER,), (WHOLE,)]
    trap = policy_trap(two, many)
    assert trap
    assert (trap.small, trap.big, trap.cards) == (QUARTER, WHOLE, 2)
    assert policy_trap(two, few) is None, "one small one locks one card"
    assert policy_trap(replace(two, policy=Policy.CONSOLIDATION), many) is None
    assert policy_trap(replace(two, cards=(card(0),)), many) is None, "one card is no choice"
    mixed = Card(pci_id="", model="A40-48", frame_mib=49152, mode=CardMode.MIXED_SIZE)
    assert (
        policy_trap(Host(name="esx-1", cards=(mixed, mixed)), [("nvidia_a40-4q",)] * 2 + [("nvidia_a40-24q",)]) is None
    )


def test_memory_that_will_not_hold_them_is_refused_in_gb() -> None:
    day, night = worker("day", memory_mib=98304), worker("night", WHOLE, on=False, memory_mib=131072)
    some = fleet(day, night, strangers={"x": Stranger(name="x", host="esx-1", reserved_mib=65536)})
    small = host_of(some, memory_mib=192 * 1024)
    (refusal,) = refusals(small, wish(day=True, night=True))[1:]
    assert refusal.message == (
        "night cannot begin on esx-1: its memory will not hold night. They need 128 GB; of 192 GB, 32 GB will be free."
    )
    assert refusal.details == ("workers that stay keep 96 GB, other VMs have reserved 64 GB",)
    assert refusals(small, wish(day=False, night=True)) == (), "the day worker's is back by then"
    assert refusals(some, wish(day=False, night=True)) == (), "a host of unknown memory objects to nothing"


def test_a_card_with_two_sizes_is_told() -> None:
    some = fleet(worker("w1"), worker("w2", HALF), cards={"esx-1": [card(0, "w1", "w2")]})
    assert overfull(some) == ["0000:3b:00.0 holds more than it can: w1 w2"]

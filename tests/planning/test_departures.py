"""From where a host goes is known until it is whole again, whatever happens on the way."""

from __future__ import annotations

from dataclasses import replace

from tests.support.fleets import CATALOGUE, day_and_night, node, timetable, with_node, with_worker, worker
from vgpuctl.basics.names import Names
from vgpuctl.model.departure import Departure
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.ledger import EntryKey
from vgpuctl.model.record import ASLEEP, Record
from vgpuctl.model.timetable import Shift
from vgpuctl.planning.departures import on_their_way, to_record
from vgpuctl.planning.planner import plan
from vgpuctl.planning.wishes import former_wish, switch_wish

DAY = tuple(f"worker-{n}" for n in range(1, 5))
TABLE = timetable(day=DAY, night=("worker-5",))


def departed(fleet: Fleet, shift: str, now: str = "20:00") -> dict[EntryKey, Departure]:
    wish = switch_wish(fleet, CATALOGUE, TABLE, shift)
    return to_record(fleet, wish, plan(fleet, wish), now)


def half_way() -> Fleet:
    """Two sleep already, and nobody of the others knows any more who was awake."""
    by_day, _ = day_and_night()
    (left,) = departed(by_day, "night").values()
    assert left is not None
    for name in DAY[:2]:
        by_day = with_worker(by_day, name, power=Power.SUSPENDED)
    return replace(by_day, departures={left.key: left})


def test_what_a_host_leaves_is_written_down_before_it_goes() -> None:
    by_day, _ = day_and_night()
    (left,) = departed(by_day, "night").values()
    assert left is not None
    assert (left.origin, left.to, left.since, left.awake) == ("day", "night", "20:00", DAY)
    assert left.carried["worker-5"] == ("grid_v100-16q",)
    assert departed(by_day, "day") == {}, "who stays leaves nothing"


def test_what_was_left_stays_whoever_goes_on() -> None:
    fleet = half_way()
    assert departed(fleet, "night", "20:05") == {}, "the same departure needs no other word"
    (back,) = departed(fleet, "day", "20:05").values()
    assert back is not None
    assert (back.origin, back.to, back.since, back.awake) == ("day", "day", "20:00", DAY)
    wish = former_wish(switch_wish(fleet, CATALOGUE, TABLE, "night"))
    assert {name for name, mine in wish.workers.items() if mine.awake} == set(DAY)
    assert [left.host for left in on_their_way(fleet, [TABLE])] == ["esx-1"]


def test_once_a_host_is_whole_an_old_departure_says_nothing_any_more() -> None:
    by_day, _ = day_and_night()
    old = Departure(timetable=TABLE.name, host="esx-1", origin="night", to="day", since="then", awake=("worker-5",))
    whole = replace(by_day, departures={old.key: old})
    assert on_their_way(whole, [TABLE]) == []
    (left,) = departed(whole, "night").values()
    assert left is not None
    assert (left.origin, left.awake) == ("day", DAY)
    marked = with_node(whole, "worker-1", record=Record(wish="day", state=ASLEEP, since="then"))
    assert [left.host for left in on_their_way(marked, [TABLE])] == ["esx-1"], "one is not given back yet"


def test_two_timetables_that_share_a_host_keep_each_their_own_departure() -> None:
    fleet = half_way()
    (left,) = fleet.departures.values()
    apart = replace(TABLE, name="other", shifts={"noon": Shift("noon", ("0 12 * * *",), workers=Names(("guest-1",)))})
    guest = worker("guest-1", host="esx-1", power=Power.OFF, on=False, node=node("guest-1"))
    fleet = replace(fleet, workers={**fleet.workers, "guest-1": guest})
    wish = switch_wish(fleet, CATALOGUE, apart, "noon")
    (theirs,) = to_record(fleet, wish, plan(fleet, wish), "20:10").values()
    assert theirs is not None
    assert (theirs.key, theirs.awake) == (("other", "esx-1"), ())
    fleet = replace(fleet, departures={left.key: left, theirs.key: theirs})
    back = former_wish(switch_wish(fleet, CATALOGUE, TABLE, "night"))
    assert {name for name, mine in back.workers.items() if mine.awake} == set(DAY)


def arrived_and_changed_by_hand(*, lease: str | None = "2026-11-18T20:03:00.000000Z") -> Fleet:
    """The night was there, its process was killed before it could take the departure off, and then somebody suspended
    the night worker."""
    by_day, _ = day_and_night()
    (left,) = departed(by_day, "night", "2026-11-18T20:00:00Z").values()
    assert left is not None
    asleep = Record(wish="night", state=ASLEEP, since="2026-11-18T20:01:00Z")
    for name in DAY:
        by_day = with_worker(by_day, name, power=Power.SUSPENDED)
        by_day = with_node(by_day, name, record=asleep)
    by_day = with_node(by_day, "worker-5", record=None, lease_renewed=lease)
    return replace(by_day, departures={left.key: left})


def awake_after_going_back(fleet: Fleet, shift: str) -> set[str]:
    wish = former_wish(switch_wish(fleet, CATALOGUE, TABLE, shift))
    return {name for name, mine in wish.workers.items() if mine.awake}


def test_a_host_that_had_arrived_goes_back_to_where_it_arrived_not_to_where_it_came_from() -> None:
    fleet = arrived_and_changed_by_hand()
    assert awake_after_going_back(fleet, "night") == {"worker-5"}
    assert awake_after_going_back(fleet, "day") == {"worker-5"}
    assert on_their_way(fleet, [TABLE]) == []
    (left,) = departed(fleet, "day", "2026-11-18T21:00:00Z").values()
    assert left is not None
    assert (left.origin, left.to, left.since, left.awake) == ("night", "day", "2026-11-18T21:00:00Z", ("worker-5",))


def test_a_worker_without_a_record_that_has_not_been_alive_since_the_departure_has_not_arrived() -> None:
    """It may have been off since before the first switch, and that switch may have been killed before it woke."""
    for lease in (None, "2026-11-18T08:00:00.000000Z", "no time"):
        fleet = arrived_and_changed_by_hand(lease=lease)
        assert awake_after_going_back(fleet, "night") == set(DAY)
        assert [left.host for left in on_their_way(fleet, [TABLE])] == ["esx-1"]


def test_a_host_whose_worker_is_awake_and_still_bears_our_record_has_not_arrived() -> None:
    fleet = with_worker(arrived_and_changed_by_hand(), "worker-5", power=Power.ON)
    fleet = with_worker(fleet, "worker-1", power=Power.ON)
    fleet = with_node(fleet, "worker-5", record=Record(wish="day", state=ASLEEP, since="2026-11-18T08:00:00Z"))
    assert awake_after_going_back(fleet, "night") == set(DAY)

"""How long something that failed waits before it is tried again: pure, in any time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vgpuctl.vsphere.throttle import MOST, PAUSE_S, WITHIN_S, Throttle
from vgpuctl.wire.retries import LASTED_S, GrowingPauses


def test_pauses_grow_to_half_a_minute() -> None:
    pauses = GrowingPauses()
    assert [pauses.after_failure(0.0) for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, 30]


def test_they_begin_anew_once_it_worked_for_a_while() -> None:
    pauses = GrowingPauses()
    assert [pauses.after_failure(worked_s) for worked_s in (0.0, 0.5, LASTED_S - 1, LASTED_S, 0.0)] == [1, 2, 4, 1, 2]


def test_a_server_that_asks_for_a_longer_pause_gets_it() -> None:
    pauses = GrowingPauses()
    assert [pauses.after_failure(0.0, asked_s) for asked_s in (5.0, 0.5, 300.0)] == [5, 2, 300]


def test_a_refused_login_is_tried_four_times_then_every_five_minutes() -> None:
    now_s, tries = 0.0, []
    throttle = Throttle(lambda: now_s)
    while now_s < 1000:
        if not throttle.wait_s():
            tries.append(now_s)
            throttle.refused()
        now_s += 1
    assert tries == [0, 1, 2, 3, 303, 603, 903]


def test_a_login_that_works_ends_the_wait_but_what_vcenter_still_counts() -> None:
    now_s = 0.0
    throttle = Throttle(lambda: now_s)
    for _ in range(MOST - 1):
        throttle.refused()
    throttle.accepted()
    throttle.refused()
    assert throttle.wait_s() == PAUSE_S
    now_s += PAUSE_S
    throttle.accepted()
    throttle.refused()
    assert throttle.wait_s() == 0


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=60))
def test_no_three_minutes_ever_see_a_fifth_refusal(tries: list[tuple[float, bool]]) -> None:
    """The fifth is what locks an account."""
    now_s, refusals = 0.0, []
    throttle = Throttle(lambda: now_s)
    for after_s, accepted in tries:
        now_s += after_s
        if throttle.wait_s() > 0:
            continue
        if accepted:
            throttle.accepted()
        else:
            throttle.refused()
            refusals.append(now_s)
    spans = zip(refusals, refusals[MOST:], strict=False)
    assert all(later - first > WITHIN_S for first, later in spans)

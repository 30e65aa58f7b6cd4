"""What `status` says of a fleet: in tables for people, in a document for programs, in lines for a log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fleets import (
    CATALOGUE,
    HALF,
    LABEL,
    WHOLE,
    card,
    fleet,
    fleets_and_wishes,
    node,
    pod,
    with_node,
    with_worker,
    worker,
    workload,
)
from tests.support.paths import ROOT
from vgpuctl.basics.moments import moment
from vgpuctl.basics.names import Names
from vgpuctl.cli.showing.estate.changes import differences, facts
from vgpuctl.cli.showing.estate.tables import fitted, screen
from vgpuctl.cli.showing.estate.views import View
from vgpuctl.cli.showing.estate.watching import watch
from vgpuctl.kube import views as kube_views
from vgpuctl.model.fleet import Fleet, Power, Stranger, Task
from vgpuctl.model.hold import Hold
from vgpuctl.model.hosts import Host
from vgpuctl.model.ledger import Entry, Ledger, key_of
from vgpuctl.model.orders import Maintenance, Override, Pause
from vgpuctl.model.outcome import Outcome
from vgpuctl.model.pods import Demand, Pod, Quota
from vgpuctl.model.record import ASLEEP, HOST, LEAVING, Record
from vgpuctl.model.selectors import Selector
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.model.workloads import Scaled
from vgpuctl.planning.due import Due
from vgpuctl.planning.selection import Selection
from vgpuctl.planning.verdicts import Hindrance, Verdict
from vgpuctl.reporting.situation import Situation, situate
from vgpuctl.reporting.status_document import document
from vgpuctl.reporting.verdicts import Hindered

QUARTERS, WHOLES = "v100-4q-4GB", "v100-16q-16GB"
DAY_NIGHT = Timetable(
    name="day-night",
    timezone="UTC",
    shifts={
        "day": Shift("day", ("0 8 * * *",), profiles=frozenset({QUARTERS})),
        "night": Shift("night", ("0 20 * * *",), profiles=frozenset({WHOLES})),
    },
)
NOON = datetime(2026, 11, 18, 16, 48, tzinfo=UTC)
AT_20 = NOON.replace(hour=20, minute=0)


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times are said as the clock on the wall here says them."""
    import time  # noqa: PLC0415

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def waits(name: str, profile: str = WHOLES, **demand: Any) -> Pod:
    return replace(pod(name), namespace="training", phase="Pending", selector={LABEL: profile}, demand=Demand(**demand))


def by_day(**more: Any) -> Fleet:
    """Four by day, one of whom somebody cordoned, and one who sleeps."""
    slept = Record(wish="day", state=ASLEEP, since="2026-11-18T08:04:11Z", cordoned=True)
    day = [node(f"worker-{n}", labels={LABEL: QUARTERS}, pods=(pod(f"web-{n}", f"worker-{n}"),)) for n in range(1, 5)]
    day[2] = replace(day[2], unschedulable=True, cordoned_by="kubectl", cordoned_since="2026-11-18T09:12:00Z")
    asleep = node("worker-5", ready=False, labels={LABEL: WHOLES}, unschedulable=True, record=slept)
    return fleet(
        *(worker(each.name, node=each) for each in day),
        worker("worker-5", WHOLE, power=Power.SUSPENDED, node=asleep),
        **more,
    )


DAY_OVERRIDE = Override(
    who="anna",
    since=NOON - timedelta(minutes=48),
    until=NOON + timedelta(hours=6),
    reason="demo",
    timetable="day-night",
    shift="day",
)
PAUSE = Pause(who="bert", since=NOON, until=NOON + timedelta(minutes=12), reason="storage works")
UNDER_MAINTENANCE = Maintenance(who="anna", since=NOON - timedelta(minutes=8), reason="patch", host="esx-1")
PARKED = Outcome(
    timetable="day-night",
    host="esx-1",
    shift="day",
    start=NOON.replace(hour=8, minute=0),
    tries=3,
    parked=True,
    why="worker-1 did not come back in 15 min.",
    code="VG403",
)


def ordered(some: Fleet, *entries: Entry) -> Fleet:
    return some.with_ledger(Ledger.of({key_of(entry): entry for entry in entries}))


def seen(some: Fleet, *timetables: Timetable, selection: Selection | None = None, now: datetime = NOON) -> Situation:
    return situate(some, CATALOGUE, timetables, selection or Selection(), now)


def shown(situation: Situation, width: int = 80, *, wide: bool = False) -> str:
    return "\n".join(line.plain for line in screen(situation, width, wide=wide))


def test_an_ordinary_day_in_eighty_columns() -> None:
    some = replace(by_day(), waiting=(waits("bert-0", gpus=1),))
    quota = Quota(namespace="training", name="gpus", used=4, hard=4)
    situation = seen(some, DAY_NIGHT).with_quotas([quota, replace(quota, namespace="elsewhere")])
    assert (
        shown(situation)
        == """\
day since 08:00 · next: night at 20:00 (in 3 h 12 min) · timetable day-night

HOST   CARD                FRAME                       HOLDS
esx-1  V100-16 0000:3b:00  ████████████████  16/16 GB  worker-[1-4]

WORKER    VM         PROFILE        NODE      PODS
worker-1  on         v100-4q-4GB    ready     1
worker-2  on         v100-4q-4GB    ready     1
worker-3  on         v100-4q-4GB    cordoned  1     by kubectl at 09:12, not us
worker-4  on         v100-4q-4GB    ready     1
worker-5  suspended  v100-16q-16GB  asleep    –     since 08:04, wakes at 20:00

1 pod waits: training/bert-0 for v100-16q-16GB → night, 20:00
training: 4 of 4 GPUs of its quota gpus are taken, 1 by pods that wait
1 thing is out of step: worker-3: cordoned by kubectl, not us, since 09:12"""
    )


@pytest.mark.parametrize(
    ("some", "told"),
    [
        (
            with_worker(by_day(), "worker-1", question="moved or copied?"),
            "worker-1: waits for an answer in vCenter: moved or copied?",
        ),
        (
            with_worker(by_day(), "worker-1", doubts=("two nodes match",)),
            "worker-1: cannot be identified for certain: two nodes match",
        ),
        (
            with_worker(by_day(), "worker-1", vgpus=()),
            "worker-1: carries no vGPU, should carry v100-4q-4GB → vgpuctl provision",
        ),
        (with_worker(by_day(), "worker-1", memory_locked=False), "worker-1: does not reserve all its memory"),
        (with_worker(by_day(), "worker-1", managed_by="com.vmware.wcp"), "managed by com.vmware.wcp"),
        (
            with_worker(by_day(), "worker-1", tasks=(Task(key="t", kind="suspend", running=True),)),
            "worker-1  suspending",
        ),
        (with_worker(by_day(), "worker-1", node=None), "worker-1: not back: its node has not registered"),
        (with_node(by_day(), "worker-1", labels={LABEL: "x"}), "worker-1: is labelled x, but carries v100-4q-4GB"),
        (with_node(by_day(), "worker-1", labels={}), "worker-1: has no label vgpu.type, but carries v100-4q-4GB"),
        (with_node(by_day(), "worker-1", labels={LABEL: QUARTERS, HOST: "esx-9"}), f"labels that are not true: {HOST}"),
        (by_day(missing=("worker-9",)), "worker-9: in profiles.yaml, but no VM of vCenter has this name"),
        (replace(by_day(), hosts={"esx-1": Host(name="esx-1", maintenance=True)}), "esx-1: in maintenance mode"),
        (replace(by_day(), hosts={"esx-1": Host(name="esx-1", connected=False)}), "esx-1: not connected to vCenter"),
    ],
)
def test_the_reason_is_said_beside_the_state(some: Fleet, told: str) -> None:
    assert told in shown(seen(some, DAY_NIGHT), 200)


ANNA = Hold(who="anna", until=NOON.replace(hour=18, minute=0), reason="driver test")


def test_a_held_worker_says_by_whom_until_when_and_why_and_is_not_out_of_step() -> None:
    """Whatever it carries, runs or is cordoned as: a person wants it so."""
    halved = with_worker(by_day(), "worker-3", vgpus=(HALF,))
    some = with_node(halved, "worker-3", hold=ANNA, labels={LABEL: "v100-8q-8GB"})
    assert "worker-3: carries v100-8q-8GB, should carry" in shown(
        seen(with_node(some, "worker-3", hold=None), DAY_NIGHT), 200
    )
    text = shown(seen(some, DAY_NIGHT), 200)
    assert "cordoned  1     held by anna until 18:00 (driver test), by kubectl at 09:12, not us" in text
    assert "out of step" not in text
    late = NOON.replace(hour=20, minute=5)
    awake = with_node(by_day(), "worker-1", hold=ANNA)
    assert "worker-1: on, but should be asleep" not in shown(seen(awake, DAY_NIGHT, now=late), 200)


def test_wrong_labels_of_a_held_worker_are_still_told() -> None:
    text = shown(seen(with_node(by_day(), "worker-1", hold=ANNA, labels={LABEL: "x"}), DAY_NIGHT), 200)
    assert "worker-1: is labelled x, but carries v100-4q-4GB → vgpuctl label-nodes" in text


def test_a_held_worker_does_not_keep_its_timetable_between_shifts() -> None:
    night = with_worker(by_day(), "worker-5", power=Power.ON)
    for name in ("worker-2", "worker-3", "worker-4"):
        night = with_worker(night, name, power=Power.SUSPENDED)
    late = NOON.replace(hour=20, minute=5)
    assert seen(night, DAY_NIGHT, now=late).states[0].current is None
    assert seen(with_node(night, "worker-1", hold=ANNA), DAY_NIGHT, now=late).states[0].current == "night"
    for name in by_day().workers:
        night = with_node(night, name, hold=ANNA)
    assert seen(night, DAY_NIGHT, now=late).states[0].current is None, "if all are held, they say it themselves"


def test_a_hold_whose_end_cannot_be_read_is_out_of_step() -> None:
    text = shown(seen(with_node(by_day(), "worker-1", hold=Hold(unreadable="hold-until is no time")), DAY_NIGHT), 200)
    assert "worker-1: held without an end, because it cannot be read: hold-until is no time" in text
    assert "vgpuctl hold worker-1 --until TIME, or vgpuctl unhold worker-1" in text


def test_a_hold_that_comes_or_goes_is_a_line() -> None:
    before, after = (facts(seen(with_node(by_day(), "worker-1", hold=hold))) for hold in (None, ANNA))
    assert list(differences(before, after)) == ["worker-1 hold none → by anna (driver test)"]


def test_our_own_cordon_says_for_which_shift() -> None:
    leaving = Record(wish="night", state=LEAVING, since="2026-11-18T16:47:00Z", cordoned=True)
    some = with_node(by_day(), "worker-3", record=leaving)
    assert "for night since 16:47" in shown(seen(some, DAY_NIGHT))


@pytest.mark.parametrize("power", [Power.ON, Power.OFF])
def test_a_provision_that_was_cut_short_is_told_with_what_goes_on(power: Power) -> None:
    leaving = Record(wish="provision", state=LEAVING, since="2026-11-18T16:47:00Z", cordoned=True)
    some = with_node(with_worker(by_day(), "worker-2", power=power), "worker-2", unschedulable=True, record=leaving)
    told = shown(seen(some, DAY_NIGHT), 200)
    assert "worker-2: on its way through provision, since 16:47 → vgpuctl provision" in told
    assert "worker-2: cordoned" not in told


def test_a_pod_is_not_told_that_a_profile_is_awake_which_nobody_carries_yet() -> None:
    some = replace(with_worker(by_day(), "worker-5", power=Power.ON, vgpus=()), waiting=(waits("bert-0"),))
    assert "bert-0 for v100-16q-16GB, which no worker that is awake carries yet" in shown(seen(some, DAY_NIGHT), 200)


def test_a_selection_speaks_of_the_selected_only() -> None:
    some = by_day()
    asleep = shown(seen(some, DAY_NIGHT, selection=Selection(Names(("worker-5",)))))
    assert "worker-5  suspended" in asleep
    assert "No worker is awake" not in asleep
    none = shown(seen(some, DAY_NIGHT, selection=Selection(selector=Selector({"zone": "b"}))))
    assert "None of 5 workers is selected." in none


def test_between_shifts_it_says_what_is_due() -> None:
    late = NOON.replace(hour=20, minute=5)
    told = shown(seen(by_day(), DAY_NIGHT, now=late))
    assert told.startswith("day · due: night since 20:00 · next: day at 08:00 (in 11 h 55 min)")
    assert "due since 20:00" in told


def test_another_zone_is_told_beside_ours() -> None:
    abroad = replace(DAY_NIGHT, timezone="Europe/Berlin")
    assert "next: night at 19:00 (20:00 Europe/Berlin, in 2 h 12 min)" in shown(seen(by_day(), abroad), 200)


@pytest.mark.parametrize(
    ("some", "timetables", "told"),
    [
        (by_day(), (), "No timetable"),
        (Fleet(), (DAY_NIGHT,), "none of our workers is in it"),
        (Fleet(), (DAY_NIGHT,), "No worker: no VM of vCenter is one"),
        (fleet(worker("worker-5", WHOLE, power=Power.OFF)), (DAY_NIGHT,), "No worker is awake."),
    ],
)
def test_where_there_is_nothing_that_is_said(some: Fleet, timetables: tuple[Timetable, ...], told: str) -> None:
    assert told in shown(seen(some, *timetables))


MESSAGE = (
    "0/5 nodes are available: 1 Insufficient nvidia.com/gpu, 4 node(s) didn't match Pod's node affinity/selector. "
)


@pytest.mark.parametrize(
    ("pods", "told"),
    [
        (
            [waits("a"), waits("b"), waits("c")],
            "3 pods wait: training/a, training/b, … for v100-16q-16GB → night, 20:00",
        ),
        (
            [waits("a", QUARTERS, unplaced=f"{MESSAGE}preemption: 0/5 nodes are available: no victims.")],
            "for v100-4q-4GB, which is awake; the scheduler says: 1 Insufficient nvidia.com/gpu",
        ),
        ([waits("a", "v100-8q-8GB")], "for v100-8q-8GB, which no worker has"),
        ([waits("a", "a-strangers-label")], ""),
    ],
)
def test_who_waits_hears_for_what(pods: list[Pod], told: str) -> None:
    text = shown(seen(replace(by_day(), waiting=tuple(pods)), DAY_NIGHT), 200)
    assert told in text
    assert ("wait" in text) is bool(told)


def test_required_affinity_asks_for_a_profile_too() -> None:
    """As the API server tells it."""
    expression = {"key": LABEL, "operator": "In", "values": [WHOLES, "other"]}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    }
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    raw = {
        "metadata": {"namespace": "training", "name": "bert-0", "uid": "1"},
        "spec": {"affinity": {"nodeAffinity": affinity}, "containers": [container]},
        "status": {"phase": "Pending"},
    }
    situation = seen(replace(by_day(), waiting=(kube_views.pod(raw),)), DAY_NIGHT)
    (each,) = situation.waiting
    assert each.profiles == (WHOLES,)
    assert situation.held_by_waiting(Quota(namespace="training", name="q", used=2, hard=4)) == 2
    placed = raw | {"spec": raw["spec"] | {"nodeName": "worker-1"}}  # type: ignore[operator]
    assert kube_views.pod(placed).demand is None


def test_a_term_that_asks_for_no_profile_lets_the_pod_go_anywhere() -> None:
    terms = (Selector(expressions=((LABEL, "In", (WHOLES,)),)), Selector(expressions=(("zone", "Exists", ()),)))
    some = replace(waits("a", affinity=terms), selector={})
    assert seen(replace(by_day(), waiting=(some,)), DAY_NIGHT).waiting == ()


def test_a_selection_shows_its_own_part_but_knows_the_whole() -> None:
    some = replace(by_day(missing=("worker-9",)), waiting=(waits("bert-0"),))
    text = shown(seen(some, DAY_NIGHT, selection=Selection(Names(("worker-[1-2]",)))))
    assert text.startswith("day since 08:00")
    assert "worker-2 " in text
    for other in ("worker-3 ", "worker-5", "worker-9", "bert-0", "out of step"):
        assert other not in text


def test_what_vms_that_have_stopped_held_counts_no_more() -> None:
    """The host may still name them: power states are what counts."""
    hosts = {"esx-1": Host(name="esx-1", cards=(card(0, "worker-1", "worker-5", "stranger"),))}
    some = replace(by_day(), hosts=hosts, strangers={"stranger": Stranger(name="stranger", vgpus=(WHOLE,), on=False)})
    assert " 4/16 GB" in shown(seen(some, DAY_NIGHT))


def large(workers: int, hosts: int) -> Fleet:
    """Alike but for one who is off."""
    labelled = {LABEL: QUARTERS}
    crowd = [
        worker(f"w-{n}", host=f"esx-{n % hosts}", on=n != 7, node=node(f"w-{n}", labels=labelled))
        for n in range(workers)
    ]
    return fleet(*crowd)


def test_a_large_estate_is_told_in_few_lines() -> None:
    some, always = large(500, 100), Shift("day", ("0 8 * * *",), workers=Names(("w-*",)))
    situation = seen(some, Timetable(name="all", timezone="UTC", shifts={"day": always}))
    text = shown(situation)
    assert len(text.splitlines()) < 20
    assert "w-[0-6] w-[8-499]" in text
    assert "w-7: off, but should be awake" in text
    assert len(shown(situation, 200, wide=True).splitlines()) > 500


def test_a_window_that_is_too_small_keeps_what_is_out_of_step() -> None:
    for height in (6, 10, 14):
        lines = [line.plain for line in fitted(seen(by_day(), DAY_NIGHT), (80, height))]
        assert len(lines) <= height
        assert lines[-1].startswith("1 thing is out of step")


WORDY = with_worker(
    by_day(), "worker-1", managed_by="an extension of a rather long name", doubts=("two nodes match its VM",)
)


@given(st.one_of(st.just(WORDY), fleets_and_wishes().map(lambda case: case[0])), st.integers(30, 130))
def test_no_line_is_wider_than_the_terminal(some: Fleet, width: int) -> None:
    for line in screen(seen(some, DAY_NIGHT), width):
        words = [len(word) for word in line.plain.split()]
        assert line.cell_len <= max(width, 4 + max(words, default=0)), line.plain


def test_names_of_others_are_shown_not_obeyed() -> None:
    bad = "worker-1\n\x1b[2J\u202e"
    hold = Hold(who=bad, reason=bad, unreadable=bad)
    inside = node(bad, unschedulable=True, cordoned_by=bad, hold=hold)
    some = fleet(worker(bad, question=bad, doubts=(bad,), managed_by=bad, node=inside))
    some = replace(some, waiting=(waits(bad, unplaced=bad),), missing=(bad,))
    for text in (shown(seen(some, DAY_NIGHT)), shown(seen(some), wide=True), *differences({}, facts(seen(some)))):
        assert not {"\x1b", "\u202e"} & set(text)
        assert not [line for line in text.splitlines() if line.startswith("\x1b")]
    assert "worker-1\n" not in shown(seen(some, DAY_NIGHT), 500)


@pytest.mark.parametrize(
    "since", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "2026-11-18T09:12:00", "x" * 5000]
)
def test_a_time_that_no_clock_shows_is_not_told(since: str) -> None:
    """Anybody who may write a node's annotations may write such a time."""
    assert moment(since, NOON) == ""


# Orders of people


def head(*entries: Entry, now: datetime = NOON, some: Fleet | None = None) -> list[str]:
    """The lines above the cards."""
    return shown(seen(ordered(some or by_day(), *entries), DAY_NIGHT, now=now), 200).partition("\n\n")[0].splitlines()


def test_each_order_in_force_has_a_line_with_who_and_until_when() -> None:
    two = (UNDER_MAINTENANCE, replace(UNDER_MAINTENANCE, host="esx-2"))
    assert head(DAY_OVERRIDE, PAUSE, *two)[1:] == [
        "override: day on day-night until 22:48, by anna (demo)",
        "paused until 17:00, by bert (storage works)",
        "esx-1 esx-2 under maintenance since 16:40, by anna (patch)",
    ]


def test_orders_that_have_ended_are_not_shown() -> None:
    ended = replace(DAY_OVERRIDE, until=NOON), replace(PAUSE, until=NOON), replace(UNDER_MAINTENANCE, until=NOON)
    assert head(*ended) == [
        "day since 16:48 · next: night at 20:00 (in 3 h 12 min) · timetable day-night",
    ], "the end of an override counts as a start"


def test_an_override_is_what_is_due_and_its_end_is_the_next_start() -> None:
    assert head(DAY_OVERRIDE)[0] == (
        "day since 16:00 · override by anna until 22:48 · next: night at 22:48 (in 6 h) · timetable day-night"
    )
    state = seen(ordered(by_day(), DAY_OVERRIDE), DAY_NIGHT).states[0]
    waking = state.waking(by_day().worker("worker-5"))
    assert waking is not None
    assert (waking.start, waking.due) == (DAY_OVERRIDE.until, False), "the start at 20:00 does not begin"


def test_an_override_that_its_timetables_shift_follows_goes_on_to_the_start_after() -> None:
    until_nine = replace(DAY_OVERRIDE, shift="night", until=NOON + timedelta(hours=5))
    (line, _) = head(until_nine)
    assert "due: night since 16:00 · override by anna until 21:48 · next: day at 08:00 (in 15 h 12 min)" in line


def test_an_override_without_an_end_has_no_next_start() -> None:
    (line, order) = head(replace(DAY_OVERRIDE, until=None))
    assert line == "day since 16:00 · override by anna · timetable day-night"
    assert order == "override: day on day-night by anna (demo)"


def test_an_override_to_a_shift_that_no_file_has_any_more_does_not_count() -> None:
    assert head(replace(DAY_OVERRIDE, shift="weekend")) == [
        "day since 08:00 · next: night at 20:00 (in 3 h 12 min) · timetable day-night"
    ]


def test_a_parked_host_is_shown_with_the_way_out_until_another_start_is_due() -> None:
    assert head(PARKED)[1:] == [
        "esx-1 is parked: day failed 3 times: worker-1 did not come back in 15 min (VG403). vgpuctl unpark esx-1"
    ]
    assert head(PARKED, now=NOON + timedelta(hours=4))[1:] == []
    assert head(replace(PARKED, parked=False))[1:] == []


def test_why_the_shift_that_is_due_does_not_begin_is_shown() -> None:
    failed = replace(PARKED, shift="night", start=AT_20, parked=False, tries=1, again=AT_20 + timedelta(minutes=5))
    (line,) = head(failed, now=AT_20 + timedelta(minutes=1))[1:]
    assert line == (
        f"night on day-night on esx-1 is tried again at {AT_20 + timedelta(minutes=5):%H:%M}, or when its reason "
        "changes: worker-1 did not come back in 15 min."
    )
    hindered = document(seen(ordered(by_day(), failed), DAY_NIGHT, now=AT_20 + timedelta(minutes=1)))["hindered"]
    assert [(each["host"], each["shift"], each["why"]) for each in hindered] == [("esx-1", "night", "retry")]
    other = seen(ordered(by_day(), failed), DAY_NIGHT, now=AT_20, selection=Selection(Names(("worker-9",))))
    assert other.hindered == ()


def test_a_selection_hides_the_orders_of_other_hosts() -> None:
    others = (replace(UNDER_MAINTENANCE, host="esx-9"), replace(PARKED, host="esx-9"))
    some = ordered(by_day(), *others, UNDER_MAINTENANCE)
    chosen = seen(some, DAY_NIGHT, selection=Selection(Names(("worker-1",))))
    assert ([each.host for each in chosen.maintenance], chosen.parked) == (["esx-1"], ())


def test_a_line_tells_of_an_order_that_comes_and_goes() -> None:
    before, after = seen(by_day(), DAY_NIGHT), seen(ordered(by_day(), DAY_OVERRIDE, PAUSE, PARKED), DAY_NIGHT)
    assert list(differences(facts(before), facts(after))) == [
        "override on day-night: day until 22:48, by anna",
        "pause until 17:00, by bert",
    ]
    assert list(differences(facts(after), facts(before)))[1] == "pause gone: until 17:00, by bert"


# The document


def everything() -> Situation:
    """A fleet in which no field is null."""
    slept = Record(wish="day", state=ASLEEP, since="2026-11-18T08:04:11Z", cordoned=True)
    inside = node("worker-1", unschedulable=True, cordoned_by="kubectl", cordoned_since="x", labels={LABEL: QUARTERS})
    held = Hold(who="anna", since="2026-11-18T09:00:00Z", until=NOON, reason="driver test", unreadable="why")
    inside = replace(inside, record=slept, pods=(pod("web", "worker-1"),), hold=held)
    one = worker("worker-1", node=inside, question="?", managed_by="m", doubts=("d",))
    one = replace(one, tasks=(Task(key="t", kind="suspend", running=True),))
    slept_for = Scaled(shift="night", timetable=DAY_NIGHT.name, since="2026-11-18T20:00:00Z", replicas=3)
    gateway = workload("gateway", 0, scaled=slept_for)
    waiting = (waits("bert-0", QUARTERS, unplaced="0/1"),)
    some = fleet(one, missing=("worker-9",), waiting=waiting, workloads={gateway.key: gateway})
    parked = replace(PARKED, start=DAY_OVERRIDE.since)
    retried = replace(parked, host="esx-2", parked=False, again=NOON)
    some = ordered(some, DAY_OVERRIDE, PAUSE, UNDER_MAINTENANCE, parked, retried)
    situation = seen(some, DAY_NIGHT).with_quotas([Quota(namespace="training", name="q", used=1, hard=2)])
    waits_for = Verdict(host="esx-2", shift="", why=Hindrance.PODS, until=NOON, what="train/model")
    due = Due(shift="night", start=NOON)
    hindered = (Hindered(timetable=DAY_NIGHT, due=due, verdicts={"esx-2": waits_for}),)
    return replace(situation, stale={"vCenter": NOON}, hindered=hindered)


def paths(value: Any, path: str = "") -> Iterator[str]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, f"{path.removesuffix('.')}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{path}[]")


def test_the_page_tells_each_field_and_no_other() -> None:
    page = (ROOT / "docs" / "reference" / "status.md").read_text()
    told = set(re.findall(r"^\| `([\w.\[\]]+)` \|", page.partition("## The document")[2], re.MULTILINE))
    found = set(paths(document(everything())))
    assert told == {path for path in found if f"{path}[]" not in found}


@given(fleets_and_wishes())
def test_keys_are_never_left_out(case: Any) -> None:
    def shape(found: Any, known: Any) -> None:
        if isinstance(found, dict):
            assert list(found) == list(known)
            for key, value in found.items():
                shape(value, known[key])
        for each in found if isinstance(found, list) else ():
            shape(each, known[0])

    shape(document(seen(case[0], DAY_NIGHT)), document(everything()))


def test_times_have_a_zone() -> None:
    found = document(everything())
    times = [found["observedAt"], found["timetables"][0]["nextStart"], found["workers"][0]["wakes"]["start"]]
    assert all(datetime.fromisoformat(time).tzinfo for time in times)


def test_quotas_that_cannot_be_seen_are_not_known() -> None:
    assert document(seen(by_day(), DAY_NIGHT).with_quotas(None))["quotas"] is None


# What cannot be seen


def test_a_silent_server_is_shown_with_its_reason() -> None:
    """However long that is, and whatever it is made of."""
    silence = {"Kubernetes": "the watch broke: \x1b[31mProtocolError\n" + "x " * 60}
    situation = replace(seen(replace(by_day(), silence=silence), DAY_NIGHT), stale={"Kubernetes": NOON})
    first = shown(situation).splitlines()[0]
    assert first.startswith("Kubernetes cannot be heard since")
    assert "the watch broke" in " ".join(shown(situation).split())
    assert max(map(len, shown(situation).splitlines())) <= 80
    assert "\x1b" not in shown(situation)
    assert document(situation)["stale"][0]["why"] == silence["Kubernetes"]
    assert document(replace(situation, fleet=by_day()))["stale"][0]["why"] is None


def test_what_cannot_be_read_is_out_of_step() -> None:
    lost = (Unreadable(kind="pod", name="lab/bad", why="it has no uid", node="worker-1"),)
    situation = seen(replace(by_day(), unreadable=lost), DAY_NIGHT)
    assert "lab/bad: this pod cannot be read and is left out: it has no uid" in shown(situation)
    assert {"kind": "pod", "name": "lab/bad"}.items() <= document(situation)["outOfStep"][0].items()


# Watching


def test_a_line_tells_why_a_server_is_silent() -> None:
    before = seen(by_day(), DAY_NIGHT)
    after = replace(seen(replace(by_day(), silence={"vCenter": "timed out"}), DAY_NIGHT), stale={"vCenter": NOON})
    assert list(differences(facts(before), facts(after))) == ["vCenter heard → silent (timed out)"]


def test_a_line_tells_what_has_changed() -> None:
    before = seen(by_day(), DAY_NIGHT)
    after = seen(with_worker(by_day(), "worker-1", tasks=(Task(key="t", kind="suspend", running=True),)), DAY_NIGHT)
    after = replace(after, stale={"vCenter": NOON})
    assert list(differences(facts(before), facts(after))) == ["vCenter heard → silent", "worker-1 VM on → suspending"]
    assert list(differences(facts(after), facts(after))) == []


def test_who_comes_and_goes_is_told() -> None:
    alone = seen(fleet(worker("worker-1", node=node("worker-1", labels={LABEL: QUARTERS}))))
    nobody = replace(alone, workers=())
    coming, going = (list(differences(facts(a), facts(b))) for a, b in ((nobody, alone), (alone, nobody)))
    assert coming == ["worker-1 VM on, profile v100-4q-4GB, node ready, label v100-4q-4GB, pods 0, host esx-1"]
    assert going[0].startswith("worker-1 gone: VM on")


class Recording(View):
    def __init__(self) -> None:
        self.seen: list[Situation] = []
        self.closed = False

    def show(self, situation: Situation) -> None:
        self.seen.append(situation)

    def __exit__(self, *_: object) -> None:
        self.closed = True


def test_it_looks_once_for_each_beat_and_closes_what_it_opened() -> None:
    """No beat, no look: nothing is polled."""
    beats = iter([NOON, NOON + timedelta(minutes=1)])
    looks = iter([NOON, NOON + timedelta(minutes=1), NOON + timedelta(minutes=2)])
    view = Recording()

    def wait(_: datetime) -> None:
        if next(beats, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(lambda: seen(by_day(), DAY_NIGHT, now=next(looks)), wait, view)
    assert len(view.seen) == 3
    assert view.closed

"""Metrics never disagree with the status document, keep Prometheus's rules, and are told on their page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from tests.support.fleets import CATALOGUE, LABEL, card, fleet, fleets_and_wishes, node, pod, worker
from tests.support.metrics_page import FILE, page
from tests.support.ports import Ports
from vgpuctl.basics.names import Names
from vgpuctl.daemon.serving.counters import COUNTED, Counters
from vgpuctl.daemon.serving.document_metrics import DOCUMENT_METRICS
from vgpuctl.daemon.serving.metrics import OWN, Metrics, OwnState
from vgpuctl.engine.ports import Answer, Report, StepReport
from vgpuctl.model.errors import BudgetError, PassingError, VgpuctlError
from vgpuctl.model.fleet import Fleet, Power
from vgpuctl.model.hold import Hold
from vgpuctl.model.journal import DONE, FAILED, HostReport
from vgpuctl.model.ledger import Ledger, key_of
from vgpuctl.model.orders import Maintenance, Override, Pause
from vgpuctl.model.outcome import Outcome
from vgpuctl.model.pods import Demand
from vgpuctl.model.record import LEAVING, Record
from vgpuctl.model.requests import Evict, PatchNode, PowerOnVm, Request
from vgpuctl.model.timetable import Shift, Timetable
from vgpuctl.planning.selection import Selection
from vgpuctl.reporting.situation import situate
from vgpuctl.reporting.status_document import document

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
MIB = 2**20
TABLE = Timetable(
    name="test",
    timezone="UTC",
    shifts={
        "day": Shift("day", ("0 8 * * *",), workers=Names(("worker-1", "worker-2"))),
        "night": Shift("night", ("0 20 * * *",), workers=Names(("worker-3",))),
    },
)
#: By series; the text has them in another order.
LABELS = {
    f"{each.name}{suffix}": each.labels
    for each in (*DOCUMENT_METRICS, *OWN, *COUNTED)
    for suffix in ("", "_sum", "_count")
}
Values = dict[tuple[str, ...], float]


def made(some: Fleet, **more: Any) -> dict[str, Any]:
    return document(replace(situate(some, CATALOGUE, [TABLE], Selection(), NOON), **more))


def state(**more: Any) -> OwnState:
    health = {"role": lambda: "leading", "ready": lambda: True, "last_round_s": lambda: 2.0}
    files = {"files_broken": lambda: False, "files_good_at": lambda: NOON}
    return OwnState(**{**health, **files, **more})


def scraped(status: dict[str, Any] | None, own: OwnState | None = None, registry: Any = None) -> dict[str, Values]:
    """What Prometheus reads, by the metric's name and its labels' values."""
    text = Metrics(lambda: status, own or state(), registry or CollectorRegistry()).exposition().decode()
    found: dict[str, Values] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in LABELS.get(sample.name, sample.labels))
            assert labels not in found.get(sample.name, {}), sample
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def told_by(doc: dict[str, Any]) -> dict[str, Values]:
    """The same, read from the document by hand."""
    now, tables, workers = seconds(doc["observedAt"]), doc["timetables"], doc["workers"]
    cards = [(host["name"], each) for host in doc["hosts"] for each in host["cards"]]
    stale = {each["server"]: each["since"] for each in doc["stale"]}
    failed: Values = {(each["timetable"], each["host"]): each["tries"] for each in doc["parked"] + doc["retrying"]}
    records = {each["name"]: each["node"]["record"] for each in workers if each["node"] and each["node"]["record"]}
    kinds = [each["kind"] for each in doc["outOfStep"]]
    asleep = {
        (each["name"], each["node"]["name"]): each["shouldBeAwake"] is False and each["node"]["state"] == "asleep"
        for each in workers
        if each["node"]
    }
    found: dict[str, Values] = {
        "status_timestamp_seconds": {(): now},
        "server_heard": {(name,): name not in stale for name in ("vCenter", "Kubernetes")},
        "server_silent_seconds": {
            (name,): now - seconds(stale[name]) if name in stale else 0 for name in ("vCenter", "Kubernetes")
        },
        "shift_due": {(each["name"], each["due"]): 1 for each in tables if each["due"]},
        "shift_current": {(each["name"], each["current"]): 1 for each in tables if each["current"]},
        "shift_late_seconds": {
            (each["name"],): 0 if each["current"] == each["due"] else now - seconds(each["since"]) for each in tables
        },
        "shift_next_start_timestamp_seconds": {
            (each["name"], each["next"]): seconds(each["nextStart"]) for each in tables if each["nextStart"]
        },
        "override": {(each["name"], each["override"]["shift"]): 1 for each in tables if each["override"]},
        "paused": {(): bool(doc["pause"])},
        "host_maintenance": {(each["host"],): 1 for each in doc["maintenance"]},
        "host_parked": {(each["timetable"], each["host"]): 1 for each in doc["parked"]},
        "host_failed_tries": failed,
        "card_frame_bytes": {(host, each["pciId"], each["model"]): each["frameMiB"] * MIB for host, each in cards},
        "card_frame_used_bytes": {(host, each["pciId"], each["model"]): each["usedMiB"] * MIB for host, each in cards},
        "worker_running": {(each["name"],): each["power"] == "poweredOn" for each in workers},
        "worker_asleep_on_purpose": {names: float(purpose) for names, purpose in asleep.items()},
        "worker_held": {(each["name"],): 1 for each in workers if each["hold"]},
        "worker_leaving_seconds": {
            (name,): now - seconds(record["since"])
            for name, record in records.items()
            if record["state"] == "leaving" and record["since"] not in {None, "yesterday"}
        },
        "workers_missing": {(): len(doc["missing"])},
        "waiting_pods": {(): len(doc["waiting"])},
        "out_of_step": {(kind,): kinds.count(kind) for kind in kinds},
    }
    return {f"vgpuctl_{name}": values for name, values in found.items() if values}


def plain() -> Fleet:
    awake = [worker(f"worker-{n}", node=node(f"worker-{n}")) for n in (1, 2)]
    asleep = worker("worker-3", power=Power.SUSPENDED, node=node("worker-3", ready=False))
    return fleet(*awake, asleep, cards={"esx-1": [card(1, "worker-1", "worker-2")]})


def leaving() -> Fleet:
    """A worker on its way out for twelve minutes, one that is held, and one whose record was written by hand."""
    since = (NOON - timedelta(minutes=12)).strftime("%Y-%m-%dT%H:%M:%SZ")
    out = Record(wish="night", state=LEAVING, since=since, cordoned=True)
    odd = Record(wish="night", state=LEAVING, since="yesterday", cordoned=True)
    return fleet(
        worker("worker-1", node=node("worker-1", unschedulable=True, record=out, pods=(pod("web", "worker-1"),))),
        worker("worker-2", node=node("worker-2", hold=Hold(who="anna"))),
        worker("worker-3", node=node("worker-3", record=odd)),
        missing=("worker-9",),
        waiting=(replace(pod("bert"), phase="Pending", selector={LABEL: "v100-4q-4GB"}, demand=Demand()),),
    )


def ordered() -> Fleet:
    since = NOON - timedelta(hours=1)
    entries = (
        Override(who="anna", since=since, timetable=TABLE.name, shift="night"),
        Pause(who="bert", since=since),
        Maintenance(who="anna", since=since, host="esx-1"),
        Outcome(timetable=TABLE.name, host="esx-1", shift="night", start=since, tries=3, parked=True),
        Outcome(timetable=TABLE.name, host="esx-2", shift="night", start=since, tries=2, again=NOON),
    )
    return plain().with_ledger(Ledger.of({key_of(each): each for each in entries}))


SCENARIOS: dict[str, Callable[[], dict[str, Any]]] = {
    "plain": lambda: made(plain()),
    "leaving": lambda: made(leaving()),
    "ordered": lambda: made(ordered()),
    "stale": lambda: made(plain(), stale={"vCenter": NOON - timedelta(seconds=90)}),
    "empty": lambda: made(fleet()),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_metric_says_what_the_document_says(scenario: str) -> None:
    status = SCENARIOS[scenario]()
    names = {each.name for each in DOCUMENT_METRICS}
    found = scraped(status)
    assert {name: values for name, values in found.items() if name in names} == told_by(status)


@given(fleets_and_wishes())
def test_whatever_the_fleet_they_agree(case: Any) -> None:
    status = made(case[0])
    names = {each.name for each in DOCUMENT_METRICS}
    assert {name: values for name, values in scraped(status).items() if name in names} == told_by(status)


def test_the_scenarios_have_a_value_for_every_metric() -> None:
    """Else the comparison would compare nothing with nothing."""
    compared = {name for make in SCENARIOS.values() for name in told_by(make())}
    assert compared == {each.name for each in DOCUMENT_METRICS}
    assert told_by(SCENARIOS["leaving"]())["vgpuctl_waiting_pods"] == {(): 1}
    orders = told_by(SCENARIOS["ordered"]())
    assert orders["vgpuctl_host_failed_tries"] == {(TABLE.name, "esx-1"): 3, (TABLE.name, "esx-2"): 2}
    assert told_by(SCENARIOS["leaving"]())["vgpuctl_worker_leaving_seconds"] == {("worker-1",): 720}


def test_before_the_first_picture_only_the_daemon_itself_is_told() -> None:
    found = {name for name in scraped(None) if name.startswith("vgpuctl_")}
    assert found == {each.name for each in OWN} - {"vgpuctl_next_switch_forecast_seconds"}


def test_the_daemon_itself_is_told() -> None:
    own = state(role=lambda: "standing by", ready=lambda: False, files_broken=lambda: True, last_round_s=lambda: None)
    found = scraped(None, replace(own, forecasts_s=lambda: {"t": 720.0}))
    assert found["vgpuctl_leading"] == found["vgpuctl_ready"] == {(): 0}
    assert found["vgpuctl_files_broken"] == {(): 1}
    assert found["vgpuctl_files_timestamp_seconds"] == {(): NOON.timestamp()}
    assert found["vgpuctl_next_switch_forecast_seconds"] == {("t",): 720}
    assert "vgpuctl_last_round_seconds" not in found
    assert scraped(None)["vgpuctl_leading"] == {(): 1}


def test_names_that_a_server_sent_cannot_break_the_format() -> None:
    status = made(plain())
    odd = 'a"b\\c\nvgpuctl_ready 7\ud800'
    status["workers"][0]["name"] = odd
    status["workers"][1]["name"] = odd
    found = scraped(status)
    assert found["vgpuctl_worker_running"].keys() == {('a"b\\c\nvgpuctl_ready 7?',), ("worker-3",)}
    assert found["vgpuctl_ready"] == {(): 1}


# Counters


class Refusing(Ports):
    """Refuses each request with the error that a test gives; None: takes it."""

    error: VgpuctlError | None = None

    def send(self, request: Request) -> Answer:
        if self.error:
            raise self.error
        return Answer()


def test_switches_and_their_steps_are_counted_by_result() -> None:
    registry = CollectorRegistry()
    counters = Counters(registry, lambda: 1000.0)
    steps = (StepReport(worker="worker-1", step="drain", seconds=60.0),)
    done = (HostReport(host="esx-1", end=DONE),)
    counters.ended("t", Report(wish="night", hosts=done, steps=steps, seconds=90.0))
    counters.ended("t", Report(wish="night", hosts=(HostReport(host="esx-1", end=FAILED),), steps=steps, seconds=5.0))
    counters.ended("u", Report(wish="night", hosts=done, seconds=0.1))
    found = scraped(None, registry=registry)
    assert found["vgpuctl_switch_duration_seconds_count"] == {("t", "done"): 1, ("t", "failed"): 1}
    assert found["vgpuctl_switch_duration_seconds_sum"] == {("t", "done"): 90, ("t", "failed"): 5}
    assert found["vgpuctl_step_duration_seconds_sum"] == {("drain",): 120}
    assert found["vgpuctl_switch_last_success_timestamp_seconds"] == {("t",): 1000, ("u",): 1000}


def test_requests_evictions_and_refusals_of_budgets_are_counted_and_still_raised() -> None:
    registry = CollectorRegistry()
    ports = Refusing(fleet(), held_at=[])
    sender = Counters(registry).counted(ports.world()).sender
    evict, budget = Evict(pod=pod("web")), BudgetError("budget web lets no pod go now")
    sender.send(evict)
    sender.send(PatchNode(node="worker-1"))
    for error, request in ((budget, evict), (budget, evict), (PassingError("away"), evict)):
        ports.error = error
        with pytest.raises(type(error)):
            sender.send(request)
    with pytest.raises(PassingError):
        sender.send(PowerOnVm(worker="worker-1", vm="vm-1"))
    found = scraped(None, registry=registry)
    assert found["vgpuctl_evictions_total"] == {("evicted",): 1, ("budget",): 2, ("failed",): 1}
    assert found["vgpuctl_requests_total"] == {
        ("Kubernetes", "Evict", "done"): 1,
        ("Kubernetes", "Evict", "failed"): 3,
        ("Kubernetes", "PatchNode", "done"): 1,
        ("vCenter", "PowerOnVm", "failed"): 1,
    }
    sender.check([evict])
    assert ports.checked == [evict]


# The page


def test_the_page_is_made_from_the_code() -> None:
    assert FILE.read_text() == page(), "python -m tests.support.metrics_page writes it anew"


def test_names_and_units_are_by_the_book() -> None:
    for each in (*DOCUMENT_METRICS, *OWN, *COUNTED):
        assert re.fullmatch(r"vgpuctl_[a-z_]+", each.name)
        assert (each.kind == "counter") == each.name.endswith("_total"), each.name
        assert not re.search(r"_(ms|minutes|mib|count|sum|bucket)$", each.name), each.name
        assert each.help.endswith("."), each.name
        assert not {"le", "quantile", "job", "instance"} & set(each.labels)

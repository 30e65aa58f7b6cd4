"""What anybody may write into objects of Kubernetes: each that cannot be read is named, and spoils nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.fleets import CATALOGUE, fleet, node
from tests.support.past import night
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.kube import views, workloads
from vgpuctl.kube.client import NotFoundError
from vgpuctl.kube.journal import Journal
from vgpuctl.kube.leases import holder_of
from vgpuctl.kube.ledger import LedgerMap, ReadLedger
from vgpuctl.model.departure import Departure
from vgpuctl.model.journal import LONGEST_REASON, HostReport, document
from vgpuctl.model.machine import is_ours
from vgpuctl.model.selectors import Selector
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.observe.joined_facts import overdue_s
from vgpuctl.planning.selection import Selection
from vgpuctl.reporting.deviations import Deviation
from vgpuctl.reporting.situation import situate

DIGITS, DEEP = "9" * 5000, "[" * 300_000
META = {"name": "x", "namespace": "lab", "uid": "u", "resourceVersion": "1"}
BOMBS = {
    "digits": DIGITS,
    "deep": DEEP,
    "NaN": '{"a": NaN}',
    "1e308": "1e308",
    "long": "x" * (1 << 20 | 1),
    "empty": "",
    "list": "[]",
    "number": 3,
}


def annotated(**annotations: Any) -> dict[str, Any]:
    return {"metadata": {**META, "annotations": {f"vgpuctl.io/{key}": each for key, each in annotations.items()}}}


def a_node(**allocatable: Any) -> dict[str, Any]:
    given = {"allocatable": {key.replace("_", "/"): value for key, value in allocatable.items()}}
    return {"metadata": META, "status": given}


def a_pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": META, "spec": {"nodeName": "n", **spec}}


def of_gpus(number: Any) -> dict[str, Any]:
    return {"metadata": META, "status": {"hard": {"requests.nvidia.com/gpu": number}}}


UNREADABLE: list[tuple[Callable[[Any], Any], Any, str]] = [
    (views.node, a_node(**{"nvidia.com/gpu": DIGITS}), "allocatable nvidia.com/gpu is no quantity"),
    (views.node, a_node(**{"nvidia.com/gpu": "1500m"}), "allocatable nvidia.com/gpu is no whole number of pieces"),
    (views.node, a_node(cpu="many"), "allocatable is no quantity"),
    (views.node, annotated(**{"for": DIGITS}), "vgpuctl.io/for is longer than 1024 characters"),
    (views.node, annotated(**{"for": "night", "awake-before": "a," * 5000}), "vgpuctl.io/awake-before has more than"),
    (views.node, {"metadata": META, "status": {"nodeInfo": {"systemUUID": DIGITS}}}, "systemUUID is longer than"),
    (views.pod, a_pod(terminationGracePeriodSeconds=10**30), "its grace period is not between"),
    (views.pod, {"metadata": {**META, "deletionTimestamp": "soon"}}, "metadata.deletionTimestamp is no time"),
    (views.needs_of, {"priority": 10**30}, "spec.priority is not between"),
    (views.needs_of, {"containers": [{"resources": {"requests": {"cpu": "1e"}}}]}, "a request of its containers is no"),
    (views.quota, of_gpus("x"), "status.hard of nvidia.com/gpu is no quantity"),
    (
        views.budget,
        {"metadata": META, "spec": {}, "status": {"expectedPods": DIGITS}},
        "status.expectedPods is no",
    ),
    (workloads.deployment, {"metadata": META, "spec": {"replicas": 2**31}}, "spec.replicas is not between 0 and"),
]


@pytest.mark.parametrize(("view", "raw", "why"), UNREADABLE, ids=[why for _, _, why in UNREADABLE])
def test_a_view_says_which_field_cannot_be_read_and_quotes_nothing(
    view: Callable[[Any], Any], raw: Any, why: str
) -> None:
    with pytest.raises(UnreadableError) as caught:
        view(raw)
    assert str(caught.value).startswith(why)
    assert len(str(caught.value)) < 100


def test_the_server_writes_a_thousand_gpus_as_1k() -> None:
    assert views.node(a_node(**{"nvidia.com/gpu": "1k"})).node.gpus == 1000
    assert (found := views.quota(of_gpus("2k"))) and found.hard == 2000


def test_a_grace_that_only_a_tenant_could_want_is_read_all_the_same() -> None:
    """A pod that is left out would be one that nobody sees on its node."""
    assert views.pod(a_pod(terminationGracePeriodSeconds=2**63 - 1)).grace_s == 2**63 - 1
    assert views.pod(a_pod(terminationGracePeriodSeconds=-1)).grace_s == 0


def test_what_a_view_takes_for_an_end_can_be_held_against_the_clock() -> None:
    seen = views.pod({"metadata": {**META, "deletionTimestamp": "2026-01-31T08:00:00Z"}})
    assert overdue_s(seen, datetime(2026, 1, 31, 8, 1, tzinfo=UTC)) == 60


@pytest.mark.parametrize("size", [DIGITS, "٣", "-1", "3.0", "", str(2**31)], ids=lambda size: size[:3])
def test_a_workload_with_a_size_that_cannot_be_read_stays_and_is_named(size: str) -> None:
    """A Deployment of anybody, in any namespace: left out, it would never get its size back."""
    found = workloads.deployment(annotated(**{"replicas-before": size, "for": "x" * 5000}))
    assert found.scaled is not None
    assert (found.scaled.replicas, len(found.scaled.shift)) == (None, 1024)
    some = fleet(workloads={found.key: found})
    (finding,) = situate(some, CATALOGUE, (), Selection(), datetime.now(UTC)).findings
    assert finding == Deviation(
        "workload",
        "lab/deployment/x",
        f"bears a mark that cannot be read: {found.scaled.unreadable}",
        "scale it yourself, then kubectl annotate -n lab deployment/x vgpuctl.io/replicas-before-",
    )
    assert found.scaled.unreadable.startswith("vgpuctl.io/replicas-before is n")


def test_of_marks_that_cannot_be_read_none_is_ours_to_take_off() -> None:
    assert is_ours({"vgpuctl.io/marks": "skip-remediation,x"})
    assert not is_ours({"vgpuctl.io/marks": "skip-remediation," + "x," * 5000})


class Maps:
    """A server with these ConfigMaps, by name."""

    def __init__(self, **maps: dict[str, Any]) -> None:
        self.maps = maps

    def get(self, path: str, **query: str) -> Any:
        name = path.rpartition("/")[2]
        if name == "configmaps":
            return {"items": [{"metadata": {"name": each}, "data": data} for each, data in self.maps.items()]}
        if name not in self.maps:
            raise NotFoundError("no such thing")
        return {"metadata": {"name": name}, "data": self.maps[name]}

    def patch(self, path: str, body: dict[str, Any]) -> None:
        self.maps.setdefault("vgpuctl", {}).update(body["data"])


LEFT = Departure(timetable="day-night", host="esx-1", origin="day", to="night", awake=("w-1",), carried={"w-1": ("q",)})


def departures(**more: Any) -> LedgerMap:
    server = Maps()
    found = LedgerMap(server, "vgpuctl")  # type: ignore[arg-type]
    found.write({LEFT.key: LEFT})
    server.maps["vgpuctl"] |= more
    return found


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_departure_that_cannot_be_read_hides_no_other(bomb: str) -> None:
    found = departures(hostile=BOMBS[bomb])
    assert found.read().departures == {LEFT.key: LEFT}
    (unreadable,) = found.read_once().unreadable
    assert (unreadable.kind, unreadable.name) == ("departure", "vgpuctl/vgpuctl hostile")
    assert unreadable.why.startswith("it ")
    assert len(unreadable.why) < 100


def test_a_departure_under_anothers_key_is_not_believed() -> None:
    found = departures()
    text = found._client.maps["vgpuctl"]["day-night.esx-1"]  # type: ignore[attr-defined]
    found = departures(**{"day-night.esx-2": text})
    assert found.read().departures == {LEFT.key: LEFT}
    assert [each.why for each in found.read_once().unreadable] == ["it names another timetable or host than its key"]


def test_once_it_is_gone_it_is_named_no_more() -> None:
    found = departures(hostile=DEEP)
    found.read()
    found._client.maps.clear()  # type: ignore[attr-defined]
    assert found.read_once() == ReadLedger()


ENTRY = document(night(number=2))
STEP = ENTRY["steps"][0]
WRONG: dict[str, dict[str, Any]] = {
    "no seconds": {"seconds": float("nan")},
    "endless": {"seconds": 1e308},
    "year 1": {"began": "0001-01-01T00:00:00+00:00"},
    "no zone": {"began": "2026-01-01T00:00:00"},
    "steps": {"steps": DIGITS},
    "backwards": {"steps": [{**STEP, "beganSeconds": 2.0, "endedSeconds": 1.0}]},
    "negative": {"steps": [{**STEP, "beganSeconds": -1.0}]},
    "many": {"steps": [STEP] * 4097},
    "why": {"hosts": [{"host": "a", "end": "b", "why": ["c"]}]},
    "left out": {"leftOut": -1},
    "wish": {"wish": None},
}


def entry(changed: dict[str, Any]) -> dict[str, str]:
    return {"entry.json": json.dumps(ENTRY | changed)}


@pytest.mark.parametrize(
    "data", [*({"entry.json": each} for each in BOMBS.values()), *map(entry, WRONG.values()), None, {}]
)
def test_an_entry_that_cannot_be_read_hides_no_other(data: Any) -> None:
    maps = {"vgpuctl-history-1": data, "vgpuctl-history-2": entry({}), "vgpuctl-history-x": entry({})}
    read = Journal(Maps(**maps), "vgpuctl").read()  # type: ignore[arg-type]
    assert read.entries == (night(number=2),)
    one, other = read.unreadable
    assert (one.kind, one.name) == ("configmap", "vgpuctl-history-1")
    assert 0 < len(one.why) < 100
    assert other == Unreadable(kind="configmap", name="vgpuctl-history-x", why="its name has no number")
    assert (read.why_unreadable("1"), read.why_unreadable("2"), read.why_unreadable("3")) == (one.why, "", "")


def test_what_we_write_we_can_read() -> None:
    """A reason quotes what a server said, which may be long."""
    long = night(number=1, hosts=(HostReport(host="esx-1", end="failed", why="y" * 10_000),)).readable()
    read = Journal(Maps(**{"vgpuctl-history-1": {"entry.json": json.dumps(document(long))}}), "n")  # type: ignore[arg-type]
    assert read.entries() == [long]
    assert long.hosts[0].why == "y" * (LONGEST_REASON - 1) + "…"


def test_a_leases_holder_is_bounded() -> None:
    said = [{}, {"holderIdentity": "a/1/b"}, {"holderIdentity": ["a"]}, None, []]
    assert [holder_of({"spec": spec}) for spec in said] == ["", "a/1/b", "", "", ""]
    assert len(holder_of({"spec": {"holderIdentity": DIGITS}})) == 253


def test_a_label_that_is_no_number_is_neither_more_nor_less() -> None:
    asked = {"matchExpressions": [{"key": "cards", "operator": "Gt", "values": ["2"]}]}
    for value, matches in (("3", True), ("2", False), ("1_000", False), ("٣", False), (DIGITS, False), ("", False)):
        assert Selector.of(asked).matches(node("n", labels={"cards": value}).labels) is matches

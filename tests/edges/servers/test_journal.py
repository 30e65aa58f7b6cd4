"""The journal over an API server that refuses, loses answers, and has other writers."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.fields import MISSING, NONSENSE, paths_in, with_nonsense
from tests.support.past import BEGAN, night, past_step
from vgpuctl.kube import journal as kube_journal
from vgpuctl.kube.client import NotFoundError
from vgpuctl.kube.journal import KEPT, KEY, MOST_BYTES, Journal
from vgpuctl.model.errors import ChangedMeanwhileError, PassingError, UnreachableError
from vgpuctl.model.journal import Entry

ME = "laptop/1/aa"


@dataclass
class Server:
    """ConfigMaps, and the Lease's holder. `before` may refuse a call; `after` may lose its answer."""

    maps: dict[str, dict[str, Any]] = field(default_factory=dict)
    holder: str = ME
    calls: list[str] = field(default_factory=list)
    before: Callable[[str], object] = lambda call: None
    after: Callable[[str], None] = lambda call: None

    def _call(self, call: str, work: Callable[[], Any]) -> Any:
        self.before(call)
        self.calls.append(call)
        done = copy.deepcopy(work())
        self.after(call)
        return done

    def get(self, path: str, **query: str) -> Any:
        if "/leases/" in path:
            spec = {"holderIdentity": self.holder, "leaseDurationSeconds": 15, "renewTime": now()}
            return {"spec": spec}
        if query:
            return self._call("list", lambda: {"items": list(self.maps.values())})
        return self._call("get", lambda: self._found(path))

    def metadata(self, path: str, **query: str) -> Any:
        return self._call("metadata", lambda: [{"name": name} for name in self.maps])

    def post(self, path: str, body: dict[str, Any]) -> Any:
        def create() -> None:
            if body["metadata"]["name"] in self.maps:
                raise ChangedMeanwhileError("already exists")
            self.maps[body["metadata"]["name"]] = body

        return self._call("post", create)

    def put(self, path: str, body: dict[str, Any]) -> Any:
        return self._call("put", lambda: self._found(path).update(body))

    def delete(self, path: str) -> Any:
        return self._call("delete", lambda: self.maps.pop(path.rpartition("/")[2]))

    def _found(self, path: str) -> dict[str, Any]:
        try:
            return self.maps[path.rpartition("/")[2]]
        except KeyError:
            raise NotFoundError("no such thing") from None


def now() -> str:
    return datetime.now(UTC).isoformat()


def journal(server: Server, holder: str = ME) -> Journal:
    return Journal(server, "vgpuctl", holder, "ann@laptop")  # type: ignore[arg-type]


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def told(server: Server, entry: Entry, holder: str = ME) -> str:
    """Begun, and ended at once."""
    some = journal(server, holder)
    some.keep(replace(entry, outcome="running"))
    return some.close(entry)


def test_what_is_written_is_read_back_under_a_number_that_people_can_type() -> None:
    server = Server()
    assert told(server, night(by="")) == ""
    assert told(server, night(by="", wish="day")) == ""
    assert list(server.maps) == ["vgpuctl-history-1", "vgpuctl-history-2"]
    assert server.maps["vgpuctl-history-1"]["metadata"]["labels"] == {"vgpuctl.io/kind": "history"}
    assert journal(server).entries() == [night(number=1), night(number=2, wish="day")]


def test_the_calls_are_constant_few() -> None:
    server = Server()
    some = journal(server)
    some.keep(night(outcome="running"))
    wait_until(lambda: "post" in server.calls)
    some.close(night())
    assert server.calls == ["metadata", "post", "put"]


def test_it_writes_what_is_newest_and_never_holds_up_who_tells_it() -> None:
    gate = threading.Event()
    server = Server(before=lambda call: gate.wait(5))
    some = journal(server)
    for seconds in range(100):
        some.keep(night(seconds=float(seconds), outcome="running"))
    gate.set()
    assert some.close(night()) == ""
    assert len(server.calls) <= 4
    assert journal(server).entries() == [night(number=1)]


def test_another_who_took_the_number_first_keeps_it() -> None:
    server = Server()

    def someone_is_faster(call: str) -> None:
        if call == "post" and not server.maps:
            server.before = lambda call: None
            told(server, night(wish="day"), holder="pod/7/bb")

    server.before = someone_is_faster
    assert told(server, night()) == ""
    assert [(entry.number, entry.wish) for entry in journal(server).entries()] == [(1, "day"), (2, "night")]


def test_a_creation_whose_answer_was_lost_is_known_again() -> None:
    server = Server()

    def lose_once(call: str) -> None:
        if call == "post":
            server.after = lambda call: None
            raise PassingError("the answer was lost")

    server.after = lose_once
    assert told(server, night()) == ""
    assert list(server.maps) == ["vgpuctl-history-1"]


def test_one_that_was_deleted_meanwhile_is_written_again() -> None:
    server = Server()
    some = journal(server)
    some.keep(night(outcome="running"))
    wait_until(lambda: bool(server.maps))
    server.maps.clear()
    assert some.close(night()) == ""
    assert journal(server).entries() == [night(number=1)]


def test_the_oldest_are_pruned() -> None:
    server = Server()
    for _ in range(KEPT + 3):
        assert told(server, night()) == ""
    numbers = [entry.number for entry in journal(server).entries()]
    assert numbers == list(range(4, KEPT + 4))


def test_what_may_not_be_deleted_stays_and_nobody_is_harmed() -> None:
    server = Server()
    for _ in range(KEPT):
        told(server, night())

    def forbidden(call: str) -> None:
        if call == "delete":
            raise UnreachableError("configmaps may not be deleted")

    server.before = forbidden
    assert told(server, night()) == ""
    assert len(journal(server).entries()) == KEPT + 1


def test_why_it_could_not_be_written_is_told_once_at_the_end() -> None:
    def forbidden(call: str) -> None:
        raise UnreachableError("configmaps is forbidden")

    assert told(Server(before=forbidden), night()) == "configmaps is forbidden"


def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch: Any) -> None:
    monkeypatch.setattr(kube_journal, "LAST_WORD_S", 0.05)
    gate = threading.Event()
    assert told(Server(before=lambda call: gate.wait(30)), night()) == "Kubernetes did not answer in time."
    gate.set()


def test_one_without_an_end_runs_as_long_as_its_writer_holds_the_lease() -> None:
    server = Server()
    told(server, night(outcome="running"))
    told(server, night())
    assert [entry.outcome for entry in journal(server).entries()] == ["running", "done"]
    server.holder = "pod/7/bb"
    assert [entry.outcome for entry in journal(server).entries()] == ["cut short", "done"]


def test_what_others_put_there_is_passed_over() -> None:
    server = Server()
    told(server, night())
    good = server.maps["vgpuctl-history-1"]
    for name, data in (("vgpuctl-history-2", {"entry.json": "{"}), ("mine", good["data"]), ("vgpuctl-history-3", None)):
        server.maps[name] = {**good, "metadata": {**good["metadata"], "name": name}, "data": data}
    assert [entry.number for entry in journal(server).entries()] == [1]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=lambda each: "missing" if each is MISSING else repr(each)[:20])
def test_an_entry_with_nonsense_in_any_field_is_read_or_named(nonsense: object) -> None:
    server = Server()
    told(server, night())
    (sound,) = server.maps.values()
    text = json.loads(sound["data"][KEY])
    inside = ({**sound, "data": {KEY: json.dumps(with_nonsense(text, path, nonsense))}} for path in paths_in(text))
    for each in (*(with_nonsense(sound, path, nonsense) for path in paths_in(sound)), *inside):
        server.maps = {"vgpuctl-history-1": each}
        history = journal(server).read()
        assert len(history.entries) + len([bad for bad in history.unreadable if bad.name and bad.why]) == 1


@pytest.mark.parametrize("items", [7, "a", {"a": 1}, True])
def test_a_list_that_is_none_is_no_empty_history(items: object) -> None:
    server = SimpleNamespace(get=lambda *_, **__: {"items": items}, garbled=PassingError)
    with pytest.raises(PassingError, match="its answer is not a list"):
        Journal(server, "vgpuctl").read()  # type: ignore[arg-type]


def large(workers: int) -> Entry:
    kinds = ("Cordon", "Drain", "Suspend", "MarkAsleep", "PowerOn", "WaitBack", "Uncordon")
    steps = [
        past_step(f"{kind}/gpu-worker-{n:05}.cluster-one.example", n + i * 40.0, n + i * 50.0 + 1, f"{kind}/w-{n}")
        for n in range(workers)
        for i, kind in enumerate(kinds)
    ]
    return night(steps=tuple(steps), began=BEGAN - timedelta(days=1))


def test_a_hundred_and_sixty_workers_fit_whole_and_ten_thousand_fit_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgpuctl.kube.journal.LAST_WORD_S", 60.0)
    server = Server()
    assert told(server, large(160)) == told(server, large(10_000)) == ""
    whole, shortened = journal(server).entries()
    assert (len(whole.steps), whole.left_out) == (160 * 7, 0)
    assert len(shortened.steps) + shortened.left_out == 10_000 * 7
    assert len(shortened.steps) > 1000
    assert all(len(each["data"]["entry.json"].encode()) <= MOST_BYTES for each in server.maps.values())

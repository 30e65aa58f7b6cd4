"""A picture on demand that is newer than the demand: beside a watch that lags, and a long call that waits."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from vgpuctl.basics.bounded import as_number
from vgpuctl.kube.reflector import Kind, Reflector
from vgpuctl.model.errors import PassingError
from vgpuctl.vsphere import stream as vcenter_stream
from vgpuctl.vsphere.property_filters import ObservationScope
from vgpuctl.vsphere.stream import VcenterStream

WITHIN_S = 10.0
PODS = Kind("/api/v1/pods", lambda item: (item["metadata"]["name"], item["metadata"]["resourceVersion"]))


def until(done: Callable[[], Any]) -> None:
    ends_s = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < ends_s
        time.sleep(0.002)


def pod(name: str, version: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": version}}


class Kubernetes:
    """Lists as they are put, and one watch that brings what is put into it, when it is put."""

    settings = SimpleNamespace(bounds=SimpleNamespace(reply_mib=1))
    called = "Kubernetes at test"

    def __init__(self) -> None:
        self.lists: list[tuple[list[dict[str, Any]], str]] = []
        self.events: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.before_the_answer: Callable[[], None] = lambda: None

    def get(self, path: str, **_: str) -> dict[str, Any]:
        items, version = self.lists.pop(0)
        self.before_the_answer()
        return {"items": items, "metadata": {"resourceVersion": version}}

    def watch(self, *_: Any, **__: Any) -> Any:
        read = lambda *_, **__: self.events.get()  # noqa: E731
        return SimpleNamespace(read1=read, close=lambda: None, release_conn=lambda: None)

    def tell(self, kind: str, item: dict[str, Any]) -> None:
        self.events.put(json.dumps({"type": kind, "object": item}).encode() + b"\n")


@pytest.fixture
def server() -> Kubernetes:
    found = Kubernetes()
    found.lists = [([pod("a", "3"), pod("b", "4"), pod("c", "5")], "5")]
    return found


@pytest.fixture
def shelf(server: Kubernetes) -> Reflector:
    found = Reflector(server, PODS, lambda: None)  # type: ignore[arg-type]
    found.fill()
    found.follow()
    return found


def told(shelf: Reflector) -> dict[str, str]:
    return dict(shelf.objects())


def test_after_a_refresh_the_list_counts_although_the_watch_lags(server: Kubernetes, shelf: Reflector) -> None:
    server.lists = [([pod("a", "9"), pod("d", "8")], "9")]
    shelf.refresh()
    assert told(shelf) == {"a": "9", "d": "8"}


def test_what_the_watch_brings_later_and_the_list_has_seen_is_passed_over(server: Kubernetes, shelf: Reflector) -> None:
    server.lists = [([pod("a", "9"), pod("d", "8")], "9")]
    shelf.refresh()
    server.tell("MODIFIED", pod("a", "6"))
    server.tell("MODIFIED", pod("b", "7"))
    server.tell("DELETED", pod("d", "7"))
    server.tell("ADDED", pod("e", "10"))
    until(lambda: "e" in told(shelf))
    assert told(shelf) == {"a": "9", "d": "8", "e": "10"}
    server.tell("DELETED", pod("a", "11"))
    until(lambda: "a" not in told(shelf))


def test_what_the_watch_brings_while_it_is_listed_and_is_newer_stays(server: Kubernetes, shelf: Reflector) -> None:
    """The list was made before the change, and comes after it."""
    server.lists = [([pod("a", "6"), pod("b", "4"), pod("c", "5")], "6")]

    def meanwhile() -> None:
        server.tell("MODIFIED", pod("a", "8"))
        server.tell("DELETED", pod("b", "9"))
        server.tell("ADDED", pod("e", "10"))
        until(lambda: "e" in told(shelf))

    server.before_the_answer = meanwhile
    shelf.refresh()
    assert told(shelf) == {"a": "8", "c": "5", "e": "10"}


def test_a_refresh_that_is_older_than_what_is_known_is_none(server: Kubernetes, shelf: Reflector) -> None:
    """The watch is past that version, so it would never bring these objects up to date again."""
    server.tell("MODIFIED", pod("a", "8"))
    until(lambda: told(shelf)["a"] == "8")
    server.lists = [([pod("a", "3"), pod("b", "4")], "7"), ([pod("a", "8")], "9"), ([pod("a", "3")], "8")]
    with pytest.raises(PassingError, match="goes back in time"):
        shelf.refresh()
    assert told(shelf) == {"a": "8", "b": "4", "c": "5"}
    shelf.refresh()
    with pytest.raises(PassingError, match="goes back in time"):
        shelf.refresh()
    assert told(shelf) == {"a": "8"}


def test_a_refresh_that_fails_changes_nothing(server: Kubernetes, shelf: Reflector) -> None:
    def fail() -> None:
        raise PassingError("no answer")

    server.lists, server.before_the_answer = [([], "9")], fail
    with pytest.raises(PassingError):
        shelf.refresh()
    assert told(shelf) == {"a": "3", "b": "4", "c": "5"}
    server.tell("MODIFIED", pod("a", "8"))
    until(lambda: told(shelf)["a"] == "8")


@pytest.mark.parametrize("version", ["", "7a", "-1", "٣", "9" * 21])
def test_versions_that_are_no_numbers_are_not_compared(version: str) -> None:
    assert as_number(version) == 0


class Collector:
    """A collector whose long calls last until they are cancelled, and which then has something to tell."""

    def __init__(self) -> None:
        self.cancelled, self.calls, self.waiting = threading.Event(), list[int](), threading.Event()
        self.deaf = False

    def CreateFilter(self, *_: Any) -> None: ...

    def CancelWaitForUpdates(self) -> None:
        if not self.deaf:
            self.cancelled.set()

    def WaitForUpdatesEx(self, version: str, options: Any) -> Any:
        self.calls.append(options.maxWaitSeconds)
        if not version:
            return SimpleNamespace(version="1", truncated=False, filterSet=[])
        if options.maxWaitSeconds == 0:
            return None
        self.waiting.set()
        if self.cancelled.wait(WITHIN_S):
            self.cancelled.clear()
            raise vmodl.fault.RequestCanceled()
        return None


def stream_of(collector: Collector) -> VcenterStream:
    stub = SimpleNamespace(InvokeMethod=lambda *_: None, version="vim.version.version9")
    content = SimpleNamespace(
        rootFolder=vim.Folder("root"),
        viewManager=SimpleNamespace(CreateContainerView=lambda *_: vim.view.ContainerView("view", stub)),
        propertyCollector=SimpleNamespace(CreatePropertyCollector=lambda: collector),
    )
    session = SimpleNamespace(
        settings=SimpleNamespace(server="vc:443"), content=content, version="vim.version.version9", open=lambda: None
    )
    found = VcenterStream(session, lambda vms: vms, ObservationScope(), lambda: None)  # type: ignore[arg-type]
    found.fill()
    return found


def test_a_refresh_ends_the_long_call_and_asks_once_without_waiting() -> None:
    collector = Collector()
    stream = stream_of(collector)
    stream.follow()
    assert collector.waiting.wait(WITHIN_S)
    before = len(collector.calls)
    stream.refresh()
    assert collector.calls[before] == 0
    until(lambda: len(collector.calls) == before + 2)
    assert collector.calls[before + 1 :] == [vcenter_stream.WAIT_S], "and it listens on"
    assert stream.heard
    stream.close()


def test_before_it_listens_a_refresh_asks_by_itself() -> None:
    collector = Collector()
    stream = stream_of(collector)
    before = len(collector.calls)
    stream.refresh()
    assert collector.calls[before:] == [0]


def test_a_vcenter_that_does_not_end_its_call_is_not_believed_to_be_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vcenter_stream, "REFRESH_WITHIN_S", 0.1)
    monkeypatch.setattr(vcenter_stream, "CANCEL_EVERY_S", 0.01)
    collector = Collector()
    collector.deaf = True
    stream = stream_of(collector)
    stream.follow()
    assert collector.waiting.wait(WITHIN_S)
    with pytest.raises(PassingError, match="vCenter cannot be heard"):
        stream.refresh()
    stream.close()
    collector.cancelled.set()

"""What one server sends wrong spoils nothing else: an object is left out by itself, and no thread ends."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.wire import Wire, answer
from vgpuctl.kube import views
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client
from vgpuctl.kube.lazy_reflector import QUOTAS, LazyReflector
from vgpuctl.kube.reflector import MOST_OLDER, Kind, Reflector
from vgpuctl.model.errors import PassingError
from vgpuctl.wire import retries
from vgpuctl.wire.replies import Bounds
from vgpuctl.wire.retries import retry

PODS = Kind("/api/v1/pods", views.pod)
NODES = Kind("/api/v1/nodes", views.node)
WITHIN_S = 10.0


class Kubernetes:
    """An API server of one kind: a list, and watches that each send what is next. Lists may be anything."""

    def __init__(self, folder: Path) -> None:
        self.lists: list[bytes] = []
        self.watches: list[list[Any]] = []
        self._folder = folder

    def client(self, wire: Wire) -> Client:
        config = {
            "current-context": "one",
            "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
            "clusters": [{"name": "one", "cluster": {"server": wire.url}}],
            "users": [{"name": "me", "user": {"token": "none"}}],
        }
        path = self._folder / "kubeconfig"
        path.write_text(json.dumps(config))
        return Client(KubernetesSettings(kubeconfig=str(path), bounds=Bounds(reply_mib=1)))

    def script(self, wire: Wire, connection: socket.socket, asked: bytes) -> None:
        if b"watch=true" not in asked.split(b"\r\n", 1)[0]:
            connection.sendall(self.lists.pop(0) if self.lists[1:] else self.lists[0])
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for event in self.watches.pop(0) if self.watches else ():
            line = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n"
            connection.sendall(b"%x\r\n%b\r\n" % (len(line), line))
        if not self.watches:
            wire.ended.wait(WITHIN_S)
        connection.sendall(b"0\r\n\r\n")


@pytest.fixture
def server(tmp_path: Path) -> Kubernetes:
    return Kubernetes(tmp_path)


@pytest.fixture
def wire(server: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.001)
    with Wire(server.script) as wire:
        yield wire


def pod(name: str, uid: str = "", version: str = "1", **more: Any) -> dict[str, Any]:
    meta = {"namespace": "lab", "name": name, "uid": uid or f"uid-{name}", "resourceVersion": version}
    return {"metadata": {**meta, **more.pop("metadata", {})}, "spec": {"nodeName": "n"}, **more}


def listed(*items: Any, version: Any = "1", **meta: Any) -> bytes:
    return answer(json.dumps({"items": items, "metadata": {"resourceVersion": version, **meta}}).encode())


def event(kind: str, item: Any) -> dict[str, Any]:
    return {"type": kind, "object": item}


def until(done: Callable[[], Any]) -> None:
    ends_s = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < ends_s
        time.sleep(0.002)


def names(shelf: Reflector) -> set[str]:
    return {pod.name for pod in shelf.objects()}


UNREADABLE_POD = pod("bad", status={"conditions": [7]})


def test_one_that_cannot_be_read_is_left_out_by_itself_and_named(server: Kubernetes, wire: Wire) -> None:
    server.lists = [listed(pod("a"), UNREADABLE_POD, pod("b"))]
    shelf = Reflector(server.client(wire), PODS, lambda: None)
    shelf.fill()
    assert names(shelf) == {"a", "b"}
    (found,) = shelf.unreadable()
    assert (found.kind, found.name, found.node) == ("pod", "lab/bad", "n")
    assert found.why == "AttributeError: 'int' object has no attribute 'get'"


@pytest.mark.parametrize("item", [None, 7, "x", [], {}, {"metadata": None}, {"metadata": {"name": 3}}], ids=str)
def test_an_item_without_a_name_is_named_by_its_place(item: Any, server: Kubernetes, wire: Wire) -> None:
    server.lists = [listed(pod("a"), item, pod("b"))]
    shelf = Reflector(server.client(wire), PODS, lambda: None)
    shelf.fill()
    assert names(shelf) == {"a", "b"}
    assert [each.name for each in shelf.unreadable()] == ["number 2 of the list"]


def test_what_was_known_of_it_goes_with_it_and_comes_back_with_it(server: Kubernetes, wire: Wire) -> None:
    """Else an old version would count as the present one."""
    server.lists = [listed(pod("bad"), pod("a"))]
    shelf = Reflector(server.client(wire), PODS, lambda: None)
    server.watches = [[event("MODIFIED", UNREADABLE_POD)]]
    shelf.fill()
    assert names(shelf) == {"bad", "a"}
    shelf.follow()
    until(shelf.unreadable)
    assert names(shelf) == {"a"}
    shelf.close()


@pytest.mark.parametrize("then", ["MODIFIED", "DELETED"])
def test_once_it_can_be_read_or_is_gone_it_is_named_no_more(then: str, server: Kubernetes, wire: Wire) -> None:
    server.lists = [listed(UNREADABLE_POD)]
    server.watches = [[event(then, pod("bad")), event("ADDED", pod("last"))]]
    shelf = Reflector(server.client(wire), PODS, lambda: None)
    shelf.follow()
    until(lambda: "last" in names(shelf))
    assert shelf.unreadable() == []
    assert ("bad" in names(shelf)) is (then == "MODIFIED")
    shelf.close()


def test_a_node_with_a_taint_that_is_none_leaves_the_others(server: Kubernetes, wire: Wire) -> None:
    """The list was thrown away for it, and the old one shown as if it were true."""
    good = {"metadata": {"name": "good", "resourceVersion": "1"}}
    bad: dict[str, Any] = {"metadata": {"name": "bad", "resourceVersion": "1"}, "spec": {"taints": [{}]}}
    server.lists = [listed(bad, good)]
    shelf = Reflector(server.client(wire), NODES, lambda: None)
    shelf.fill()
    assert [seen.node.name for seen in shelf.objects()] == ["good"]
    assert [(each.kind, each.name) for each in shelf.unreadable()] == [("node", "bad")]


NO_LISTS = {
    "an HTML page": answer(b"<html>Sign in</html>"),
    "an array": answer(b"[]"),
    "null": answer(b"null"),
    "another object": answer(b'{"kind": "Status", "metadata": {}}'),
    "no version": answer(b'{"items": [], "metadata": {}}'),
    "a version that is none": listed(version=7),
    "items that are none": answer(b'{"items": {}, "metadata": {"resourceVersion": "1"}}'),
    "metadata that are none": answer(b'{"items": [], "metadata": 7}'),
    "a list of other objects": answer(b'{"kind": "NodeList", "items": [], "metadata": {"resourceVersion": "1"}}'),
}


@pytest.mark.parametrize("what", NO_LISTS)
def test_what_is_no_list_is_asked_for_again(what: str, server: Kubernetes, wire: Wire) -> None:
    server.lists = [NO_LISTS[what], listed(pod("a"))]
    shelf = Reflector(server.client(wire), PODS, lambda: None)
    with pytest.raises(PassingError, match="answers, but not as Kubernetes does"):
        shelf.fill()
    assert not shelf.heard
    shelf.follow()
    until(lambda: names(shelf) == {"a"})
    shelf.close()


NO_EVENTS = {
    "no JSON": b"<html>\n",
    "no object": b"7\n",
    "null": b"null\n",
    "an unknown type": event("MOVED", pod("a")),
    "no type": {"object": pod("a")},
    "no object in it": event("MODIFIED", None),
    "a Status": event("ADDED", {"kind": "Status", "metadata": {}}),
    "an object without metadata": event("MODIFIED", {"spec": {}}),
    "metadata that are none": event("DELETED", {"metadata": 7}),
    "an object of another kind": event("MODIFIED", {"kind": "Node", **pod("a")}),
    "a bookmark of another kind": event("BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": "7"}}),
    "an event from before the list": event("MODIFIED", pod("old", version="3")),
    "an error": event("ERROR", {"code": 410, "message": "too old resource version"}),
    "an error that is none": event("ERROR", None),
    "a half line": json.dumps(event("ADDED", pod("a"))).encode() + b'\n{"type": "MODIFIED", "obj',
    "brackets without an end": b"[" * 200_000 + b"\n",
    "a line that is too long": json.dumps(event("ADDED", pod("a", x="x" * (3 << 20)))).encode() + b"\n",
}


@pytest.mark.parametrize("what", NO_EVENTS)
def test_after_an_event_that_is_none_the_list_is_read_anew(what: str, server: Kubernetes, wire: Wire) -> None:
    server.lists = [listed(pod("old"), version="5"), listed(pod("new"), version="5")]
    server.watches = [[NO_EVENTS[what]], []]
    silences: list[str] = []
    shelf = Reflector(server.client(wire), PODS, lambda: silences.append(shelf.silence))
    shelf.follow()
    until(lambda: names(shelf) == {"new"} and shelf.heard)
    assert any(silences)
    shelf.close()


def test_a_list_that_names_its_kind_is_read(server: Kubernetes, wire: Wire) -> None:
    named = {"kind": "PodList", "items": [pod("a")], "metadata": {"resourceVersion": "1"}}
    server.lists = [answer(json.dumps(named).encode())]
    shelf = Reflector(server.client(wire), PODS, lambda: None)
    shelf.fill()
    assert names(shelf) == {"a"}


def test_a_list_older_than_what_is_known_is_refused_until_the_server_insists(server: Kubernetes, wire: Wire) -> None:
    """A replica that lags answers once or twice; etcd restored from a backup answers so for ever."""
    server.lists = [listed(pod("new"), version="9"), listed(pod("old"), version="7")]
    shelf = Reflector(server.client(wire), PODS, lambda: None)
    shelf.fill()
    for _ in range(MOST_OLDER):
        with pytest.raises(PassingError, match=r"the list of Kubernetes at .* goes back in time"):
            shelf.fill()
    shelf.fill()
    assert names(shelf) == {"old"}
    server.lists = [listed(pod("older"), version="6")]
    with pytest.raises(PassingError, match="goes back in time"):
        shelf.fill()


def test_an_event_without_a_version_is_taken_and_the_last_version_kept(server: Kubernetes, wire: Wire) -> None:
    server.lists = [listed(pod("a"), version="5")]
    nameless = {"type": "BOOKMARK", "object": {"metadata": {}}}
    server.watches = [[event("ADDED", pod("b", version="")), nameless, event("BOOKMARK", None)], []]
    shelf = Reflector(server.client(wire), PODS, lambda: None)
    shelf.follow()
    until(lambda: len([path for path in wire.paths() if "watch" in path]) == 2)
    assert names(shelf) == {"a", "b"}
    assert all("resourceVersion=5" in path for path in wire.paths() if "watch" in path)
    shelf.close()


def test_a_watch_that_ends_as_soon_as_it_begins_is_not_asked_for_without_a_pause(
    server: Kubernetes, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 1000.0)
    monkeypatch.setattr(retries, "LONGEST_PAUSE_S", 1000.0)
    server.lists, server.watches = [listed(pod("a"))], [[] for _ in range(50)]
    shelf = Reflector(server.client(wire), PODS, lambda: None)
    shelf.follow()
    until(lambda: shelf.silence)
    assert shelf.silence == "the watch ended at once"
    assert len(wire.paths()) == 2
    shelf.close()


def test_pages_without_an_end_are_given_up(server: Kubernetes, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgpuctl.kube.reflector.MOST_PAGES", 5)
    server.lists = [listed(pod("a"), **{"continue": "more"})]
    with pytest.raises(PassingError, match="its list does not end"):
        Reflector(server.client(wire), PODS, lambda: None).fill()
    assert len(wire.paths()) == 5


def test_a_list_whose_next_page_has_expired_is_read_anew(server: Kubernetes, wire: Wire) -> None:
    # Kubernetes: the token of a next page holds for some five minutes.
    expired = {"reason": "Expired", "message": "The provided continue parameter is too old", "code": 410}
    first_page = listed(pod("a"), **{"continue": "more"})
    server.lists = [first_page, answer(json.dumps(expired).encode(), "410 Gone"), listed(pod("a"), pod("b"))]
    shelf = Reflector(server.client(wire), PODS, lambda: None)
    retry(shelf.fill, pause_s=0.001)
    assert names(shelf) == {"a", "b"}


QUOTA = {
    "metadata": {"namespace": "lab", "name": "gpus", "resourceVersion": "1"},
    "status": {"hard": {"requests.nvidia.com/gpu": "4"}, "used": {}},
}


def test_quotas_are_asked_for_again_after_an_outage(server: Kubernetes, wire: Wire) -> None:
    server.lists = [answer(b"{}", "503 Busy")]
    quotas = LazyReflector(server.client(wire), QUOTAS, lambda: None)
    assert quotas.objects(follow=True) is None
    server.lists = [listed(QUOTA)]
    until(lambda: quotas.objects(follow=True))
    assert [each.name for each in quotas.objects(follow=True) or ()] == ["gpus"]
    quotas.close()


def test_quotas_that_we_may_not_see_are_not_asked_for_again(server: Kubernetes, wire: Wire) -> None:
    server.lists = [answer(b"{}", "403 Forbidden"), listed(QUOTA)]
    quotas = LazyReflector(server.client(wire), QUOTAS, lambda: None)
    assert [quotas.objects(follow=True) for _ in range(3)] == [None] * 3
    assert len(wire.paths()) == 1
    quotas.close()

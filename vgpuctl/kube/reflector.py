"""All objects of one kind, listed once and kept up to date by the API server's own events."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from vgpuctl.basics.bounded import as_number
from vgpuctl.basics.typed import checked
from vgpuctl.kube.client import Client
from vgpuctl.model.errors import PassingError, VgpuctlError, in_short
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.wire.follower import Follower
from vgpuctl.wire.replies import CHUNK, MIB

WATCH_S = 240
#: kubectl's own (`--chunk-size`). Decision 0010: pages become our data as they arrive; no JSON is kept.
PAGE = "500"
#: Five million objects: a longer list is endless.
MOST_PAGES = 10_000
#: A shorter watch without any event would be requested again and again.
SHORTEST_S = 1.0
_CHANGES = {"ADDED", "MODIFIED"}
#: How many lists in a row may be older than what is known before the server is believed.
#: Kubernetes: after etcd was restored from a backup, versions count from an earlier number.
MOST_OLDER = 3


class Kind(NamedTuple):
    """Where objects of a kind are listed, which of them (`query`), and what we keep of each."""

    path: str
    view: Callable[[Any], Any]
    query: Mapping[str, str] = {}


class Reflector(Follower):
    """All objects of one kind, as our own views. One thread writes; readers take a copy under the lock.

    If an object cannot be read, it and its earlier view are left out, and it is listed as unreadable.
    """

    def __init__(self, client: Client, kind: Kind, on_change: Callable[[], None]) -> None:
        super().__init__(f"watch-{_word(kind.path)}s", on_change)
        self._client, self._path, self._view, self._query = client, kind.path, kind.view, dict(kind.query)
        self._objects: dict[str, Any] = {}
        self._unreadable: dict[str, Unreadable] = {}
        self._version = ""
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        #: The version that the last refresh saw, and the versions of events that arrive during one.
        self._seen_until = 0
        self._changed_while_listing: dict[str, int] | None = None
        self._older_lists = 0

    def objects(self) -> list[Any]:
        with self._lock:
            return list(self._objects.values())

    def unreadable(self) -> list[Unreadable]:
        with self._lock:
            return list(self._unreadable.values())

    def fill(self) -> None:
        """Fetch the whole list, page by page; raise if the server cannot be asked."""
        with self._refreshing:
            known = self._newest()
            objects, unreadable, version = self._listed()
            if 0 < as_number(version) < known and self._older_lists < MOST_OLDER:
                self._older_lists += 1
                raise self._goes_back("list")
            with self._lock:
                self._objects, self._unreadable, self._seen_until = objects, unreadable, 0
        self._version, self._older_lists = version, 0
        self._mark_heard()

    def refresh(self) -> None:
        """List once more, now, beside the watch. Later events that are older than this list are skipped."""
        with self._refreshing:
            self._changed_while_listing = changed_while_listing = dict[str, int]()
            known = self._newest()
            try:
                objects, unreadable, version = self._listed()
                if 0 < as_number(version) < known:
                    # The watch has passed that version, and would never bring these objects up to date again.
                    raise self._goes_back("list")
                with self._lock:
                    self._seen_until = as_number(version)
                    # The list was made before such an event, and is read after it.
                    newer = {name for name, at in changed_while_listing.items() if at > self._seen_until}
                    self._objects = _merged(self._objects, objects, newer)
                    self._unreadable = _merged(self._unreadable, unreadable, newer)
            finally:
                self._changed_while_listing = None

    def _listed(self) -> tuple[dict[str, Any], dict[str, Unreadable], str]:
        objects: dict[str, Any] = {}
        unreadable: dict[str, Unreadable] = {}
        query = {**self._query, "limit": PAGE}
        for _ in range(MOST_PAGES):
            # Kubernetes: all pages are of one moment, and their token holds for some five minutes.
            page = self._client.get(self._path, **query)
            items, version, query["continue"] = self._page(page)
            for number, item in enumerate(items, start=len(objects) + len(unreadable) + 1):
                name = _name(item) or f"number {number} of the list"
                self._put(name, item, objects, unreadable)
            if not query["continue"]:
                break
        else:
            raise self._client.garbled("its list does not end")
        return objects, unreadable, version

    def _page(self, page: Any) -> tuple[list[Any], str, str]:
        """Return the page's objects, the version to watch from, and the token of the next page."""
        items, meta = page.get("items"), page.get("metadata")
        version = meta.get("resourceVersion") if isinstance(meta, dict) else None
        if not isinstance(items, list | None) or not isinstance(version, str) or not version:
            raise self._client.garbled("its answer is not a list")
        if self._is_foreign(page, "list"):
            raise self._client.garbled("its list is one of other objects")
        return items or [], version, str(meta.get("continue") or "")

    def _put(self, name: str, item: Any, objects: dict[str, Any], unreadable: dict[str, Unreadable]) -> None:
        """Store an object by its name. Of an unreadable object only the name remains."""
        objects.pop(name, None)
        unreadable.pop(name, None)
        try:
            objects[name] = checked(self._view(item))
        except Exception as error:
            # Decision 0018: its last good version would show an old state as if it were true.
            unreadable[name] = Unreadable(kind=_word(self._path), name=name, why=in_short(error), node=_node(item))

    def _listen(self) -> None:
        if not self.heard:
            self.fill()
            self._on_change()
        self._watch()

    def _watch(self) -> None:
        began_s, events = time.monotonic(), 0
        response = self._client.watch(self._path, self._version, WATCH_S, **self._query)
        for event in _events(response, self._client.settings.bounds.reply_mib * MIB):
            events += 1
            self._apply(event)
            if event["type"] != "BOOKMARK":
                self._on_change()
            if self._closed.is_set():
                return
        if not events and time.monotonic() - began_s < SHORTEST_S:
            raise PassingError("the watch ended at once")

    def _apply(self, event: Any) -> None:
        """Apply an event. If it names no object, or its type is unknown, the list is read again."""
        kind, item = (event.get("type"), event.get("object")) if isinstance(event, dict) else (None, None)
        name = _name(item)
        if kind == "ERROR":
            # Kubernetes: a watch from before the compaction gets such an event (410). The list is then read anew.
            message = item.get("message") if isinstance(item, dict) else ""
            raise PassingError(f"the watch has ended: {message or 'no reason'}")
        if kind != "BOOKMARK" and (kind not in {*_CHANGES, "DELETED"} or not name):
            # Decision 0018: the effect of such an event is not known.
            raise self._client.garbled("its watch sends something that is not an event")
        if self._is_foreign(item):
            raise self._client.garbled("its watch sends other objects")
        # Kubernetes: a watch sends its events in the order of their versions.
        if 0 < as_number(_version(item)) < as_number(self._version):
            raise self._goes_back("watch")
        if kind != "BOOKMARK":
            with self._lock:
                self._change(name, item, gone=kind == "DELETED")
        self._version = _version(item) or self._version

    def _is_foreign(self, item: Any, more: str = "") -> bool:
        """True if it says that it is of another kind: an answer to another request, mixed up on its way."""
        # Kubernetes, API conventions: each list and each object of a watch names its kind.
        kind = item.get("kind") if isinstance(item, dict) else None
        return isinstance(kind, str) and kind.lower() != f"{_word(self._path)}{more}"

    def _newest(self) -> int:
        """Return the newest version that a list or the watch has brought."""
        return max(as_number(self._version), self._seen_until)

    def _goes_back(self, what: str) -> VgpuctlError:
        # kubernetes#59848: behind a load balancer, an API server that lags behind the others answers with an old state.
        return PassingError(f"the {what} of {self._client.called} goes back in time")

    def _change(self, name: str, item: Any, *, gone: bool) -> None:
        # Decision 0019: a refreshed list must not be undone by its watch, which may lag behind it.
        at = as_number(_version(item))
        if 0 < at <= self._seen_until:
            return
        if self._changed_while_listing is not None:
            self._changed_while_listing[name] = at
        if gone:
            self._objects.pop(name, None)
            self._unreadable.pop(name, None)
        else:
            self._put(name, item, self._objects, self._unreadable)


def _events(response: Any, most_bytes: float) -> Iterator[Any]:
    """Yield the events of a watch. A broken connection is an error, a proper end is not."""
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    ended = False
    try:
        for line in _lines(_chunks(response), most_bytes):
            yield json.loads(line)
        ended = True
    except (HTTPError, OSError, ValueError, RecursionError) as error:
        raise PassingError(f"the watch broke: {type(error).__name__}") from error
    finally:
        # The next request on this connection must not read the rest of this answer.
        (response.release_conn if ended else response.close)()


def _chunks(response: Any) -> Iterator[bytes]:
    """Yield what has arrived so far, without waiting for more."""
    # Packed replies are unpacked below urllib3, where their size is counted (decision 0018).
    while chunk := response.read1(CHUNK, decode_content=False):
        yield chunk


def _lines(chunks: Iterator[bytes], most_bytes: float) -> Iterator[bytes]:
    """Yield whole lines. A line may arrive in many chunks, which are joined once."""
    begun: list[bytes] = []
    size = 0
    for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole = b"".join((*begun, line))
            begun, size = [], 0
            if whole.strip():
                yield whole
        begun.append(rest)
        size += len(rest)
        if size > most_bytes:
            raise PassingError("an event of the watch is larger than a reply may be")
    if b"".join(begun).strip():
        raise PassingError("the watch ended in the middle of an event")


def _merged(known: dict[str, Any], listed: dict[str, Any], newer: set[str]) -> dict[str, Any]:
    """Return the list, but keep what is known under `newer` names. A newer event may also be a deletion."""
    kept = {name: known[name] for name in newer if name in known}
    return {name: each for name, each in listed.items() if name not in newer} | kept


def _meta(item: Any) -> dict[str, Any]:
    meta = item.get("metadata") if isinstance(item, dict) else None
    return meta if isinstance(meta, dict) else {}


def _name(item: Any) -> str:
    """Return the name with its namespace; "" if there is none."""
    meta = _meta(item)
    name, namespace = meta.get("name"), meta.get("namespace")
    if not isinstance(name, str) or not name:
        return ""
    return f"{namespace}/{name}" if isinstance(namespace, str) and namespace else name


def _version(item: Any) -> str:
    version = _meta(item).get("resourceVersion")
    return version if isinstance(version, str) else ""


def _node(item: Any) -> str:
    """Return the node of a pod."""
    spec = item.get("spec") if isinstance(item, dict) else None
    node = spec.get("nodeName") if isinstance(spec, dict) else None
    return node if isinstance(node, str) else ""


def _word(path: str) -> str:
    """Return the kind of a path: `/api/v1/pods` → `pod`."""
    return path.rsplit("/", 1)[-1].removesuffix("s")

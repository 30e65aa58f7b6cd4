"""All objects of one kind, listed once and kept true by the API server's own events."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from vgpuctl.kube.client import Client
from vgpuctl.model.errors import PassingError, VgpuctlError

WATCH_S = 240
AGAIN_AFTER_S = 1.0
PAGE = "500"


class Kind(NamedTuple):
    """Where objects of a kind are listed, and what we keep of each."""

    path: str
    view: Callable[[Any], Any]


class Shelf:
    """All objects of one kind, as views of ours. One thread writes; readers take a copy under the lock."""

    def __init__(self, client: Client, kind: Kind, on_change: Callable[[], None]) -> None:
        self._client, self._path, self._view, self._on_change = client, kind.path, kind.view, on_change
        self._objects: dict[str, Any] = {}
        self._version = ""
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.heard = False

    def objects(self) -> list[Any]:
        with self._lock:
            return list(self._objects.values())

    def fill(self) -> None:
        """The whole list, page by page; raises where the server cannot be asked."""
        found: dict[str, Any] = {}
        query = {"limit": PAGE}
        while True:
            page = self._client.get(self._path, **query)
            found.update({item["metadata"]["uid"]: self._view(item) for item in page.get("items") or ()})
            token = page["metadata"].get("continue")
            if not token:
                break
            query["continue"] = token
        with self._lock:
            self._objects = found
        self._version = page["metadata"]["resourceVersion"]
        self.heard = True

    def follow(self) -> None:
        name = f"watch-{self._path.rsplit('/', 1)[-1]}"
        threading.Thread(target=self._listen, name=name, daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                if not self.heard:
                    self.fill()
                    self._on_change()
                self._watch()
            except VgpuctlError as error:
                self.heard = False
                self._on_change()
                self._closed.wait(max(AGAIN_AFTER_S, error.after_s))

    def _watch(self) -> None:
        for event in _events(self._client.watch(self._path, self._version, WATCH_S)):
            if event["type"] == "ERROR":
                raise PassingError("the watch has ended; the list must be read anew")
            self._take(event)
            if event["type"] != "BOOKMARK":
                self._on_change()
            if self._closed.is_set():
                return

    def _take(self, event: Any) -> None:
        meta = event["object"]["metadata"]
        self._version = meta["resourceVersion"]
        with self._lock:
            if event["type"] == "DELETED":
                self._objects.pop(meta["uid"], None)
            elif event["type"] != "BOOKMARK":
                self._objects[meta["uid"]] = self._view(event["object"])


def _events(response: Any) -> Iterator[Any]:
    """The lines of a watch; a connection that breaks is an error, one that ends in good order is not."""
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    rest = b""
    try:
        for chunk in response.stream(amt=None, decode_content=True):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (json.loads(line) for line in lines if line)
    except (HTTPError, OSError, ValueError) as error:
        raise PassingError(f"the watch broke: {type(error).__name__}") from error
    finally:
        response.release_conn()

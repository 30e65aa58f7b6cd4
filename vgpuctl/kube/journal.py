"""The journal in Kubernetes: one bounded ConfigMap per entry, readable from any laptop; the oldest are pruned."""

from __future__ import annotations

import json
import queue
import re
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.kube.client import Client, NotFoundError, Object
from vgpuctl.kube.leases import acting
from vgpuctl.kube.own_namespace import create_in
from vgpuctl.model.errors import ChangedMeanwhileError, VgpuctlError, in_short
from vgpuctl.model.journal import CUT_SHORT, MOST_NUMBER, RUNNING, Entry, document, from_document
from vgpuctl.model.record import PREFIX
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.wire.retries import retry

NAME = "vgpuctl-history-"
KIND_LABEL, HISTORY = PREFIX + "kind", "history"
HOLDER = PREFIX + "holder"
KEY = "entry.json"
#: Decision 0011: entries are for people, and are bounded. Many months are for a metrics store, not for etcd.
KEPT = 50
#: A ConfigMap holds 1 MiB; this many steps with usual names fill half of it.
MOST_BYTES, MOST_STEPS = 512 * 1024, 3000
#: Decision 0011: a command's end waits for the journal no longer than this.
LAST_WORD_S = 3.0
_DIGITS = re.compile(f"[0-9]{{1,{len(str(MOST_NUMBER))}}}")
PAUSE_S = 1.0


class History(NamedTuple):
    """The journal as it was read: its entries, oldest first, and the ConfigMaps that are not readable as one."""

    entries: tuple[Entry, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()

    def why_unreadable(self, number: str) -> str:
        """Return why the entry of this number cannot be read; "" if there is no such problem."""
        return next((each.why for each in self.unreadable if each.name == f"{NAME}{number}"), "")


class Journal:
    """Writes entries from its own thread. `holder`: the writer's name in the Lease, to show that it still runs."""

    def __init__(self, client: Client, namespace: str, holder: str = "", writer: str = "") -> None:
        self._client, self._namespace, self._holder, self._by = client, namespace, holder, writer
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"
        self._given: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._number = self._tried = 0
        self._why = ""

    def keep(self, entry: Entry) -> None:
        self._given.put(entry)
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="journal", daemon=True)
            self._writer.start()

    def close(self, entry: Entry) -> str:
        self.keep(entry)
        self._given.put(None)
        if self._writer is not None:
            self._writer.join(LAST_WORD_S)
            if self._writer.is_alive():
                return "Kubernetes did not answer in time."
        return self._why

    def read(self) -> History:
        """Return the whole journal. An entry without an end was cut short, unless its writer still holds the Lease."""
        readable: list[tuple[Entry, str]] = []
        unreadable: list[Unreadable] = []
        for each in self._listed():
            try:
                readable.append((_entry(each), _holder(each)))
            except Exception as error:
                # Decision 0018: what cannot be read is left out by itself, and named.
                unreadable.append(_unreadable(each, error))
        # Decision 0011: a crash leaves `running`, so the Lease is asked. A wrong clock only shows a wrong word.
        holder = self._acting() if any(entry.outcome == RUNNING for entry, _ in readable) else ""
        entries = [
            replace(entry, outcome=CUT_SHORT) if entry.outcome == RUNNING and writer != holder else entry
            for entry, writer in readable
        ]
        return History(tuple(sorted(entries, key=lambda entry: entry.number)), tuple(unreadable))

    def _listed(self) -> list[Any]:
        items = self._client.get(self._path, labelSelector=f"{KIND_LABEL}={HISTORY}").get("items")
        if not isinstance(items, list | None):
            raise self._client.garbled("its answer is not a list")
        return items or []

    def entries(self) -> list[Entry]:
        """Return the readable entries, oldest first."""
        return list(self.read().entries)

    def _acting(self) -> str:
        """Return the Lease's holder. If we may not read the Lease, no writer counts as alive."""
        try:
            return acting(self._client, self._namespace)
        except VgpuctlError:
            return ""

    def _write_all(self) -> None:
        while (entry := self._newest()) is not None:
            self._why = self._write_with_retries(entry)

    def _newest(self) -> Entry | None:
        """Return the newest waiting entry; older ones are not written. None, put in after the last, ends the thread."""
        entry = self._given.get()
        while entry is not None and not self._given.empty():
            newer = self._given.get()
            if newer is None:
                self._given.put(None)
                break
            entry = newer
        return entry

    def _write_with_retries(self, entry: Entry) -> str:
        """Write an entry. Return why that failed, or ""."""
        try:
            retry(lambda: self._write(entry), PAUSE_S, LAST_WORD_S)
        except VgpuctlError as error:
            return error.message
        except Exception as error:  # A thread must never die silently.
            return f"{type(error).__name__}: {error}"
        return ""

    def _write(self, entry: Entry) -> None:
        if not self._number:
            self._create(entry)
            return
        body = self._body(entry, self._number)
        try:
            self._client.put(f"{self._path}/{NAME}{self._number}", body)
        # Decision 0011: an entry may be deleted at any time. The next write puts it back.
        except NotFoundError:
            create_in(self._client, self._namespace, self._path, body)

    def _create(self, entry: Entry) -> None:
        """Create the entry under the next free number.

        A number taken by another writer, or by our own lost write, is recognised.
        """
        # Decision 0011: a number is what people can type. The server gives it to the writer that is first.
        found = self._client.metadata(self._path, labelSelector=f"{KIND_LABEL}={HISTORY}")
        known = sorted(number for each in found if (number := _number(str(each["name"]))))
        first = self._tried or (known[-1] + 1 if known else 1)
        self._number = next((n for n in range(first, first + KEPT) if self._take(entry, n)), 0)
        self._prune(known)

    def _take(self, entry: Entry, number: int) -> bool:
        path, body, self._tried = f"{self._path}/{NAME}{number}", self._body(entry, number), number
        try:
            create_in(self._client, self._namespace, self._path, body)
        except ChangedMeanwhileError:
            # Kubernetes: 409 says that it exists. Its holder says whether a lost answer of ours created it.
            if _holder(self._client.get(path)) != self._holder:
                return False
            self._client.put(path, body)
        return True

    def _prune(self, known: list[int]) -> None:
        """Delete the oldest entries, so that with the new one KEPT remain."""
        for number in known[: max(len(known) + 1 - KEPT, 0)]:
            with suppress(VgpuctlError):
                self._client.delete(f"{self._path}/{NAME}{number}")

    def _body(self, entry: Entry, number: int) -> Object:
        metadata = {
            "name": f"{NAME}{number}",
            "labels": {KIND_LABEL: HISTORY},
            "annotations": {HOLDER: self._holder},
        }
        text = _text(replace(entry, number=number, by=self._by))
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}


def _text(entry: Entry) -> str:
    """Return the entry as JSON, with its steps halved until it fits. The longest steps are kept: they say most."""
    entry = entry.readable()
    entry = entry.shortened(MOST_STEPS) if len(entry.steps) > MOST_STEPS else entry
    while (
        # Kubernetes counts bytes, so the length is taken after encoding.
        len((text := json.dumps(document(entry), ensure_ascii=False)).encode(errors="replace")) > MOST_BYTES
        and entry.steps
    ):
        entry = entry.shortened(len(entry.steps) // 2)
    return text


def _entry(found: Object) -> Entry:
    """Read an entry. UnreadableError if it is not ours, or was damaged."""
    number = _number(found["metadata"]["name"])
    if not number:
        raise UnreadableError("its name has no number")
    return replace(from_document(bounded.document((found.get("data") or {}).get(KEY), KEY)), number=number)


def _unreadable(found: Any, error: Exception) -> Unreadable:
    meta = found.get("metadata") if isinstance(found, dict) else None
    name = bounded.cut(meta.get("name")) if isinstance(meta, dict) else ""
    why = str(error) if isinstance(error, UnreadableError) else in_short(error)
    return Unreadable(kind="configmap", name=name or "without a name", why=why)


def _holder(found: Object) -> str:
    return str((found["metadata"].get("annotations") or {}).get(HOLDER) or "")


def _number(name: str) -> int:
    """Return the entry's number; 0 for a name that is not ours."""
    digits = name.removeprefix(NAME)
    return int(digits) if digits != name and _DIGITS.fullmatch(digits) else 0

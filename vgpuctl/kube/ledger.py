"""The ledger in a ConfigMap, one key for each entry: another laptop or replica can go on, go back, or obey."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.kube.client import Client, NotFoundError
from vgpuctl.kube.ledger_entries import entry_of, text_of
from vgpuctl.kube.own_namespace import create_in
from vgpuctl.kube.reflector import Kind
from vgpuctl.model.ledger import Changes, Entry, EntryKey, Ledger, key_of
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.wire.retries import retry

NAME = "vgpuctl"
AGAIN_AFTER_S = 0.5

#: Kubernetes: a ConfigMap's key has letters, digits, `-`, `_` and `.`, and at most 253 characters.
_NO_KEY = re.compile(r"[^-._A-Za-z0-9]")


class ReadLedger(NamedTuple):
    """The contents of the ConfigMap, and its keys that cannot be read."""

    known: Ledger = Ledger()
    unreadable: tuple[Unreadable, ...] = ()


class LedgerMap:
    """The ConfigMap. Departures and outcomes are written only by the instance at work; orders by people."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"

    def read(self) -> Ledger:
        return retry(self.read_once, AGAIN_AFTER_S).known

    def read_once(self) -> ReadLedger:
        """Read the ConfigMap once, without retries, for callers that retry themselves."""
        try:
            return _read(self._namespace, self._client.get(f"{self._path}/{NAME}"))
        except NotFoundError:
            return ReadLedger()

    @property
    def kind(self) -> Kind:
        """Return what a stream should follow: all objects of this name, of which there is at most one."""
        view = partial(_read, self._namespace)
        return Kind(self._path, view, {"fieldSelector": f"metadata.name={NAME}"})

    def write(self, changed: Changes) -> None:
        """Write the changes in one merge patch."""
        # Decision 0012: one key for each entry, so two people that order something at once do not lose it.
        data = {_name(key): None if entry is None else text_of(entry) for key, entry in changed.items()}
        # Decision 0012: a switch that cannot be recorded does not begin, so a busy server is asked again.
        retry(lambda: self._write(data), AGAIN_AFTER_S)

    def _write(self, data: Mapping[str, str | None]) -> None:
        try:
            self._client.patch(f"{self._path}/{NAME}", {"data": dict(data)})
        except NotFoundError:
            # Kubernetes: a merge patch creates no object, so the first entry of all does.
            written = {key: text for key, text in data.items() if text is not None}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": written}
            create_in(self._client, self._namespace, self._path, body)


def _read(namespace: str, raw: Mapping[str, Any]) -> ReadLedger:
    """Read all keys. A key that cannot be read is left alone; the next entry of its name overwrites it."""
    found: dict[EntryKey, Entry] = {}
    unreadable: list[Unreadable] = []
    for name, text in (raw.get("data") or {}).items():
        try:
            entry = entry_of(name, text, _name)
            found[key_of(entry)] = entry
        except UnreadableError as error:
            kind = "ledger entry" if name.startswith(".") else "departure"
            unreadable.append(Unreadable(kind=kind, name=f"{namespace}/{NAME} {name}", why=str(error)))
    return ReadLedger(Ledger.of(found), tuple(unreadable))


def _name(key: EntryKey) -> str:
    # Decision 0012: two timetables may share a host, so both names are in the key.
    return _NO_KEY.sub("_", ".".join(key))[:253]

"""Departures in a ConfigMap, one key for each timetable and host: another laptop or replica can go on, or go back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.kube.client import Client, NotFoundError
from vgpuctl.kube.own_namespace import create_in
from vgpuctl.kube.reflector import Kind
from vgpuctl.model.departure import Departure, Key
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.wire.retries import retry

NAME = "vgpuctl"
AGAIN_AFTER_S = 0.5

_TEXTS = ("timetable", "host", "from", "to", "since")
#: Kubernetes: a ConfigMap's key has letters, digits, `-`, `_` and `.`, and at most 253 characters.
_NO_KEY = re.compile(r"[^-._A-Za-z0-9]")


class Departures(NamedTuple):
    """The contents of the ConfigMap, and its keys that cannot be read."""

    known: Mapping[Key, Departure] = {}
    unreadable: tuple[Unreadable, ...] = ()


class DepartureMap:
    """The ConfigMap of departures. It is written only under the acting Lease."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"

    def read(self) -> Mapping[Key, Departure]:
        return retry(self.read_once, AGAIN_AFTER_S).known

    def read_once(self) -> Departures:
        """Read the ConfigMap once, without retries, for callers that retry themselves."""
        try:
            return _departures(self._namespace, self._client.get(f"{self._path}/{NAME}"))
        except NotFoundError:
            return Departures()

    @property
    def kind(self) -> Kind:
        """Return what a stream should follow: all objects of this name, of which there is at most one."""
        view = partial(_departures, self._namespace)
        return Kind(self._path, view, {"fieldSelector": f"metadata.name={NAME}"})

    def write(self, changed: Mapping[Key, Departure | None]) -> None:
        """Write the changes in one merge patch."""
        data = {_name(key): None if departure is None else _text(departure) for key, departure in changed.items()}
        # Decision 0012: a switch that cannot be recorded does not begin, so a busy server is asked again.
        retry(lambda: self._write(data), AGAIN_AFTER_S)

    def _write(self, data: Mapping[str, str | None]) -> None:
        try:
            self._client.patch(f"{self._path}/{NAME}", {"data": dict(data)})
        except NotFoundError:
            # Kubernetes: a merge patch creates no object, so the first departure of all does.
            written = {key: text for key, text in data.items() if text is not None}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": written}
            create_in(self._client, self._namespace, self._path, body)


def _departures(namespace: str, raw: Mapping[str, Any]) -> Departures:
    """Read all keys. A key that cannot be read is left alone; the next departure of its host overwrites it."""
    found: dict[Key, Departure] = {}
    unreadable: list[Unreadable] = []
    for name, text in (raw.get("data") or {}).items():
        try:
            departure = _departure(name, text)
            found[departure.key] = departure
        except UnreadableError as error:
            called = f"{namespace}/{NAME} {name}"
            unreadable.append(Unreadable(kind="departure", name=called, why=str(error)))
    return Departures(found, tuple(unreadable))


def _name(key: Key) -> str:
    # Decision 0012: two timetables may share a host, so both names are in the key.
    return _NO_KEY.sub("_", ".".join(key))[:253]


def _text(departure: Departure) -> str:
    return json.dumps(
        {
            "timetable": departure.timetable,
            "host": departure.host,
            "from": departure.origin,
            "to": departure.to,
            "since": departure.since,
            "awake": list(departure.awake),
            "carried": {name: list(vgpus) for name, vgpus in departure.carried.items()},
        }
    )


def _departure(name: str, written: Any) -> Departure:
    """Read one key. UnreadableError if its text is not in our format, or belongs under another key."""
    raw = bounded.fields(bounded.document(written, "it"), "it")
    timetable, host, origin, to, since = (bounded.text(raw.get(key), key) for key in _TEXTS)
    carried = bounded.fields(raw.get("carried"), "carried")
    departure = Departure(
        timetable=timetable,
        host=host,
        origin=origin,
        to=to,
        since=since,
        awake=bounded.texts(raw.get("awake"), "awake"),
        carried={worker: bounded.texts(vgpus, "carried") for worker, vgpus in carried.items()},
    )
    if _name(departure.key) != name:
        raise UnreadableError("it names another timetable or host than its key")
    return departure

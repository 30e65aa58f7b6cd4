"""Departures in a ConfigMap, a key for each timetable and host: another laptop or replica can go on, or back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from vgpuctl.kube.client import Client, NotFoundError
from vgpuctl.kube.patience import patiently
from vgpuctl.kube.shelf import Kind
from vgpuctl.model.departure import Departure, Key

NAME = "vgpuctl"
AGAIN_AFTER_S = 0.5

_NO_KEY = re.compile(r"[^-._A-Za-z0-9]")


class DepartureMap:
    """Written only under the acting Lease."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"

    def read(self) -> Mapping[Key, Departure]:
        return patiently(self.read_once, AGAIN_AFTER_S)

    def read_once(self) -> Mapping[Key, Departure]:
        """For callers that try again by themselves."""
        try:
            return _departures(self._client.get(f"{self._path}/{NAME}"))
        except NotFoundError:
            return {}

    @property
    def kind(self) -> Kind:
        """For a stream: all objects of this name, of which there is one or none."""
        return Kind(self._path, _departures, {"fieldSelector": f"metadata.name={NAME}"})

    def write(self, changed: Mapping[Key, Departure | None]) -> None:
        """As one merge of what changed."""
        data = {_name(key): None if left is None else _text(left) for key, left in changed.items()}
        patiently(lambda: self._write(data), AGAIN_AFTER_S)

    def _write(self, data: Mapping[str, str | None]) -> None:
        try:
            self._client.patch(f"{self._path}/{NAME}", {"data": dict(data)})
        except NotFoundError:
            there = {key: text for key, text in data.items() if text is not None}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": there}
            self._client.post(self._path, body)


def _departures(raw: Mapping[str, Any]) -> Mapping[Key, Departure]:
    """A key that cannot be read belongs to another program, and stays as it is."""
    found = (_departure(text) for text in (raw.get("data") or {}).values())
    return {each.key: each for each in found if each is not None}


def _name(key: Key) -> str:
    return _NO_KEY.sub("_", ".".join(key))[:253]


def _text(left: Departure) -> str:
    return json.dumps(
        {
            "timetable": left.timetable,
            "host": left.host,
            "from": left.origin,
            "to": left.to,
            "since": left.since,
            "awake": list(left.awake),
            "carried": {name: list(vgpus) for name, vgpus in left.carried.items()},
        }
    )


def _departure(text: str) -> Departure | None:
    try:
        raw: Any = json.loads(text)
        return Departure(
            timetable=str(raw["timetable"]),
            host=str(raw["host"]),
            origin=str(raw["from"]),
            to=str(raw["to"]),
            since=str(raw["since"]),
            awake=tuple(map(str, raw["awake"])),
            carried={str(name): tuple(map(str, vgpus)) for name, vgpus in raw["carried"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None

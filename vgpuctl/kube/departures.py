"""Departures in a ConfigMap, one key a host, so that another laptop or replica can go on, or back."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from vgpuctl.kube.client import Client, NotFoundError
from vgpuctl.model.departure import Departure
from vgpuctl.model.errors import VgpuctlError

NAME = "vgpuctl"
PATIENCE_S = 15.0
AGAIN_AFTER_S = 0.5

_NO_KEY = re.compile(r"[^-._A-Za-z0-9]")


class DepartureMap:
    """Written only under the acting Lease."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"

    def read(self) -> Mapping[str, Departure]:
        """A key that we cannot understand is left to whoever wrote it."""
        try:
            raw = self._client.get(f"{self._path}/{NAME}")
        except NotFoundError:
            return {}
        found = (_departure(text) for text in (raw.get("data") or {}).values())
        return {each.host: each for each in found if each is not None}

    def write(self, changed: Mapping[str, Departure | None]) -> None:
        """As one merge of what changed; a server that cannot answer just now is asked again for a while."""
        data = {_key(host): None if left is None else _text(left) for host, left in changed.items()}
        began = time.monotonic()
        while True:
            try:
                return self._write(data)
            except VgpuctlError as error:
                if not error.passing or time.monotonic() - began > PATIENCE_S:
                    raise
                time.sleep(AGAIN_AFTER_S)

    def _write(self, data: Mapping[str, str | None]) -> None:
        try:
            self._client.patch(f"{self._path}/{NAME}", {"data": dict(data)})
        except NotFoundError:
            there = {key: text for key, text in data.items() if text is not None}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": there}
            self._client.post(self._path, body)


def _key(host: str) -> str:
    return _NO_KEY.sub("_", host)[:253]


def _text(left: Departure) -> str:
    return json.dumps(
        {
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
            host=str(raw["host"]),
            origin=str(raw["from"]),
            to=str(raw["to"]),
            since=str(raw["since"]),
            awake=tuple(map(str, raw["awake"])),
            carried={str(name): tuple(map(str, vgpus)) for name, vgpus in raw["carried"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None

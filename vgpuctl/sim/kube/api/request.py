"""One request to the API, parsed. Nothing here depends on HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vgpuctl.sim.kube.access.users import ADMIN, User
from vgpuctl.sim.kube.api import errors
from vgpuctl.sim.kube.api.errors import bad_request
from vgpuctl.sim.kube.api.kinds import BY_PATH, Kind
from vgpuctl.sim.kube.objects import Object

JSON = "application/json"
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`user`: the caller. In one process, and for people in it, that is the administrator."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    agent: str = "unknown"
    user: User = ADMIN

    @property
    def dry_run(self) -> bool:
        return self.query.get("dryRun") == "All"

    @property
    def wants_table(self) -> bool:
        return "as=Table" in self.accept

    @property
    def watch(self) -> bool:
        return self.flag("watch")

    @property
    def manager(self) -> str:
        # Kubernetes: without a field manager, the user agent up to its first slash.
        return self.query.get("fieldManager") or self.agent.split("/")[0] or "unknown"

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("true", "1")

    def number(self, name: str) -> int | None:
        text = self.query.get(name)
        if not text:
            return None
        try:
            return int(text)
        except ValueError:
            # Measured: kube-apiserver 1.36 answers 400 to a limit that is no number.
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None

    def json(self) -> Any:
        try:
            return parsed(self.body)
        except ValueError as error:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def parsed(body: bytes) -> Any:
    """Return the JSON value; raise ValueError also if it is nested too deeply."""
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("exceeded max depth") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _is_deep(value):
        raise ValueError("exceeded max depth")
    return value


def _refuse_constant(text: str) -> None:
    """Python's parser accepts NaN and Infinity, which JSON does not have."""
    raise ValueError(f"invalid character {text[0]!r} looking for beginning of value")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


@dataclass(frozen=True, slots=True)
class Reply:
    code: int
    body: Object
    media_type: str = JSON


@dataclass(frozen=True, slots=True)
class Target:
    """The objects that a path names."""

    kind: Kind
    namespace: str
    name: str
    subresource: str

    @property
    def resource(self) -> str:
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural

    @property
    def is_everywhere(self) -> bool:
        """Return True for a kind's objects in all namespaces, which can only be read together."""
        return not self.name and self.kind.namespaced and not self.namespace

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which a fault can select the object."""
        return (self.name, f"{self.namespace}/{self.name}") if self.name else ()


def target_of(path: str) -> Target:
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise errors.no_such_resource()
    namespace = ""
    # Kubernetes: /api/v1/namespaces/NAME/status is the namespace's own status, and no kind in it.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *more = [*rest, "", ""]
    kind = BY_PATH.get((group, version, plural))
    if kind is None or any(more) or not _fits(kind, namespace, name, subresource):
        raise errors.no_such_resource()
    return Target(kind, namespace, name, subresource)


def _fits(kind: Kind, namespace: str, name: str, subresource: str) -> bool:
    if subresource and subresource not in kind.subresources:
        return False
    return bool(namespace or not name) if kind.namespaced else not namespace

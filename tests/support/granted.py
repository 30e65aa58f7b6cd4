"""What RBAC objects allow, as Kubernetes decides it, and the requests that a world's Kubernetes gets."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unittest.mock import patch

from vgpuctl.sim.kube.api.api import Api
from vgpuctl.sim.kube.api.request import Request, Target, target_of

Object = dict[str, Any]
#: kube-apiserver: a list or watch of one name, by its field, may be bounded to that name.
NAME_FIELD = "metadata.name="
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Asked(NamedTuple):
    """One request, as an authorizer sees it. Without a name: any object, or one that does not exist yet."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str

    @classmethod
    def of(cls, request: Request, target: Target) -> Asked:
        selected = request.query.get("fieldSelector", "")
        name = target.name or (selected.removeprefix(NAME_FIELD) if selected.startswith(NAME_FIELD) else "")
        reading = "get" if target.name else "watch" if request.watch else "list"
        verb = VERBS.get(request.method, reading)
        return cls(verb, target.kind.group, target.resource, target.namespace, name)


@dataclass(frozen=True)
class Rule:
    """One rule of a role, and the namespace in which it holds; "" for all."""

    namespace: str
    group: str
    resources: tuple[str, ...]
    names: tuple[str, ...]
    verbs: tuple[str, ...]

    def allows(self, asked: Asked) -> bool:
        here = self.namespace in ("", asked.namespace)
        named = not self.names or asked.name in self.names
        return here and named and asked.group == self.group and self.covers(asked)

    def covers(self, asked: Asked) -> bool:
        return asked.resource in self.resources and asked.verb in self.verbs


def rules(objects: Iterable[Object]) -> list[Rule]:
    """Return the rules of all roles among the objects."""
    return [
        Rule(
            namespace=each["metadata"].get("namespace", ""),
            group=group,
            resources=tuple(rule["resources"]),
            names=tuple(rule.get("resourceNames", ())),
            verbs=tuple(rule["verbs"]),
        )
        for each in objects
        for rule in each.get("rules", ())
        for group in rule["apiGroups"]
    ]


@dataclass
class Heard:
    """The requests of vgpuctl. `open_to_all`: those on no resource of the world, such as discovery and reviews."""

    asked: set[Asked] = field(default_factory=set)
    open_to_all: set[str] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, request: Request) -> None:
        with self._changed:
            try:
                self.asked.add(Asked.of(request, target_of(request.path)))
            except Exception:
                self.open_to_all.add(f"{request.method} {request.path}")
            self._changed.notify_all()

    def wait_for(self, *verbs_and_resources: tuple[str, str], within_s: float = 20.0) -> None:
        """Wait until each of these was asked, of any object."""
        wanted = set(verbs_and_resources)
        with self._changed:
            assert self._changed.wait_for(
                lambda: wanted <= {(asked.verb, asked.resource) for asked in self.asked}, within_s
            ), f"only {self.asked}"


@contextmanager
def hearing(agent: str = "vgpuctl") -> Iterator[Heard]:
    """Hear the requests of this program to every simulated Kubernetes of this process."""
    heard, answer = Heard(), Api.answer

    def listening(self: Api, request: Request, target: Target | None = None) -> Any:
        if request.agent == agent:
            heard.add(request)
        return answer(self, request, target)

    with patch.object(Api, "answer", listening):
        yield heard

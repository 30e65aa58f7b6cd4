"""What a request asks to do, as authorizers see it: a verb on a resource, or on a path that is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
#: kube-apiserver: a list or watch of one name, by its field, may be bounded to that name.
_NAME_FIELD = "metadata.name="
#: kube-apiserver: these parts of a namespace are no kinds in it.
_PARTS_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """`path`: only where no resource is asked for. Without a name: any object, or one that does not exist yet."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def whole_resource(self) -> str:
        """The resource as rules name it, such as `pods/eviction`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def attributes_of(method: str, path: str, query: Mapping[str, str]) -> Attributes:
    """Return what a request asks for, as RequestInfoFactory does: without a look at which resources there are."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        # Measured: kube-apiserver 1.36 names the method where no resource is asked for, such as `post`.
        return Attributes(verb=method.lower(), path=path)
    verb, namespace = _VERBS.get(method, method.lower()), ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _PARTS_OF_NAMESPACES:
            rest = rest[2:]
    resource, name, subresource, *_ = [*rest, "", "", ""]
    if not name:
        verb, name = _verb_on_many(verb, query), _selected_name(query)
    return Attributes(
        verb=verb, group=group, resource=resource, subresource=subresource, namespace=namespace, name=name
    )


def _verb_on_many(verb: str, query: Mapping[str, str]) -> str:
    if verb == "get":
        return "watch" if query.get("watch", "").lower() in ("true", "1") else "list"
    return "deletecollection" if verb == "delete" else verb


def _selected_name(query: Mapping[str, str]) -> str:
    terms = query.get("fieldSelector", "").split(",")
    return next((term.removeprefix(_NAME_FIELD) for term in terms if term.startswith(_NAME_FIELD)), "")

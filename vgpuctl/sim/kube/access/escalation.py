"""Nobody grants rights that they lack: what a role or binding would grant, against what its writer may do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from vgpuctl.sim.kube.access.attributes import Attributes
from vgpuctl.sim.kube.access.rbac import Authorizer, allows, rules_of
from vgpuctl.sim.kube.access.users import User
from vgpuctl.sim.kube.api import errors
from vgpuctl.sim.kube.api.kinds import RBAC, STORED, Kind
from vgpuctl.sim.kube.objects import Object, name_of, namespace_of

_BINDINGS = ("rolebindings", "clusterrolebindings")


def check(authorizer: Authorizer, user: User, item: Object, before: Object | None = None) -> None:
    """Refuse a role or binding that would grant more than its writer has in its namespace."""
    kind = _KINDS.get(item["kind"])
    if kind is None or user.may_do_all or _grants_nothing_new(item, before):
        return
    granted, exempt = _of_binding(authorizer, item, kind) if "roleRef" in item else _of_role(item, kind)
    namespace = namespace_of(item)
    if authorizer.decide(user, replace(exempt, namespace=namespace)).allowed:
        return
    held = authorizer.rules_for(user, namespace)
    missing = [each for rule in granted for each in _parts(rule) if not any(allows(has, each) for has in held)]
    if missing:
        raise errors.forbidden(kind, name_of(item), _words(user, missing))


_KINDS: dict[str, Kind] = {kind.kind: kind for kind in STORED.values() if kind.group == RBAC}


def _grants_nothing_new(item: Object, before: Object | None) -> bool:
    fields = ("rules", "roleRef", "subjects")
    return before is not None and [item.get(field) for field in fields] == [before.get(field) for field in fields]


def _of_role(role: Object, kind: Kind) -> tuple[list[Object], Attributes]:
    """Return the rules of a role, and the right that would allow writing it all the same."""
    return rules_of(role), Attributes(verb="escalate", group=RBAC, resource=kind.plural, name=name_of(role))


def _of_binding(authorizer: Authorizer, binding: Object, kind: Kind) -> tuple[list[Object], Attributes]:
    """Return the rules of the bound role, and the right that would allow binding it all the same."""
    reference = binding["roleRef"]
    role = authorizer.role_of(binding)
    if role is None:
        # Measured: kube-apiserver 1.36 names the role with the binding's kind.
        raise errors.not_found(kind, reference["name"])
    resource = _KINDS[reference["kind"]].plural
    return rules_of(role), Attributes(verb="bind", group=RBAC, resource=resource, name=reference["name"])


def _parts(rule: Object) -> Iterator[Attributes]:
    """Yield each single right of a rule. A `*` is covered only by a `*`: here it is a name like any other."""
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield Attributes(verb=verb, path=path)
        for group, whole in product(rule.get("apiGroups") or (), rule.get("resources") or ()):
            resource, _, subresource = whole.partition("/")
            for name in rule.get("resourceNames") or ("",):
                yield Attributes(verb=verb, group=group, resource=resource, subresource=subresource, name=name)


def _words(user: User, missing: list[Attributes]) -> str:
    groups = " ".join(f'"{group}"' for group in user.groups)
    verbs: dict[Attributes, list[str]] = {}
    for each in missing:
        verbs.setdefault(replace(each, verb=""), []).append(each.verb)
    rules = "\n".join(sorted(_written(each, found) for each, found in verbs.items()))
    held = "is attempting to grant RBAC permissions not currently held"
    return f'user "{user.name}" (groups=[{groups}]) {held}:\n{rules}'


def _written(right: Attributes, verbs: list[str]) -> str:
    """Return one missing right as kube-apiserver writes it: by group and resource, with all verbs that are missing."""
    lists = {"NonResourceURLs": [right.path]} if right.path else {"APIGroups": [right.group]}
    lists |= {"Resources": [right.whole_resource]} if right.resource else {}
    lists |= {"ResourceNames": [right.name]} if right.name else {}
    written = (f"{field}:[{' '.join(map(_quoted, values))}]" for field, values in (lists | {"Verbs": verbs}).items())
    return "{" + ", ".join(written) + "}"


def _quoted(text: str) -> str:
    return f'"{text}"'

"""vgpuctl's own account on a simulated Kubernetes: the rights that `vgpuctl rights kubernetes` prints, less some."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.clients import kubectl
from tests.support.forked import Command, run
from tests.support.peers.control_plane import kubeconfig
from vgpuctl.kube.rights import OURS, Right, Scope
from vgpuctl.sim.kube.api.kinds import ALL
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate
from vgpuctl.wire.retries import retry

WITHIN_S = 40
Object = dict[str, Any]
NAMESPACES = {Scope.CLUSTER: "", Scope.HEARTBEATS: str(Scope.HEARTBEATS), Scope.OWN: OURS}


@cache
def printed(*options: str) -> str:
    """Return what the command prints, as JSON."""
    words = ("rights", "kubernetes", *options, "-o", "json")
    code, out, err = run(Command(words=words, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}), WITHIN_S)
    assert (code, err) == (0, "")
    return out


class Account:
    """The account as the file that the command prints with these options makes it, with a token of its own."""

    def __init__(self, estate: Estate, *options: str) -> None:
        self._estate, self._documents = estate, json.loads(printed(*options))["items"]
        self._apply(self._documents)
        name = next(each["metadata"]["name"] for each in self._documents if each["kind"] == "ServiceAccount")
        path = f"/api/v1/namespaces/{OURS}/serviceaccounts/{name}/token"
        token = estate.within(lambda world: kubectl(world.api, "POST", path))["status"]["token"]
        self.kubeconfig = Path(f"{estate.folder}-account")
        self.kubeconfig.write_text(json.dumps(kubeconfig(estate.kubernetes_port, token, estate.ca)))

    def environment(self) -> dict[str, str]:
        """Return the estate's environment with this account in Kubernetes."""
        return {**self._estate.environment(), "KUBECONFIG": str(self.kubeconfig), "NO_COLOR": "1"}

    def run(self, *words: str) -> tuple[int, str]:
        """Run a command with this account. Return its exit code and what it wrote."""
        code, out, err = run(Command(words=words, env=self.environment()), WITHIN_S)
        return code, out + err

    @contextmanager
    def without(self, *rights: Right, verbs: tuple[str, ...] = ()) -> Iterator[None]:
        """Take these verbs of the rights away for a while; without verbs, all of them."""
        documents = self._documents
        for right in rights:
            documents = [_less(each, right, verbs or right.verbs) for each in documents]
        self._apply(documents)
        yield
        self._apply(self._documents)

    def _apply(self, documents: list[Object]) -> None:
        def apply(world: World) -> None:
            for each in documents:
                _apply_one(world, each)

        self._estate.within(apply)


def _less(document: Object, right: Right, verbs: tuple[str, ...]) -> Object:
    """Return a role of the right's place without these verbs, and any other object as it is."""
    if "rules" not in document or document["metadata"].get("namespace", "") != NAMESPACES[right.scope]:
        return document
    rules = [_single(rule, resource) for rule in document["rules"] for resource in rule["resources"]]
    concerned = [rule for rule in rules if _is_of(rule, right)]
    assert {verb for rule in concerned for verb in rule["verbs"]} >= set(verbs), f"nothing grants {right}"
    for rule in concerned:
        rule["verbs"] = [verb for verb in rule["verbs"] if verb not in verbs]
    return {**document, "rules": [rule for rule in rules if rule["verbs"]]}


def _single(rule: Object, resource: str) -> Object:
    return {**rule, "resources": [resource]}


def _is_of(rule: Object, right: Right) -> bool:
    """True if the rule grants the right or a part of it. A rule for all names grants also a right to one name."""
    names = tuple(rule.get("resourceNames", ()))
    return rule["apiGroups"] == [right.group] and rule["resources"][0] in right.resources and names in (right.names, ())


def _apply_one(world: World, document: Object) -> None:
    """Create or replace an object, as `kubectl apply` does."""
    kind = next(kind for kind in ALL if kind.kind == document["kind"])
    namespace, name = document["metadata"].get("namespace", ""), document["metadata"]["name"]
    base = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    path = f"{base}/namespaces/{namespace}/{kind.plural}" if namespace else f"{base}/{kind.plural}"
    there = world.kubernetes.store.get(kind.plural, namespace, name)
    kubectl(world.api, "PUT" if there else "POST", f"{path}/{name}" if there else path, document)


def lose_patience() -> None:
    """Let a command retry for half a second instead of 15 s: called in its process before it begins."""
    _, *others = retry.__defaults__ or ()
    retry.__defaults__ = (0.5, *others)

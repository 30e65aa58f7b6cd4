"""vgpuctl's own ServiceAccount on a real control plane, with the rights that `vgpuctl rights` prints and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.support.granted import Asked
from tests.support.peers.clusters import Cluster, Object
from tests.support.peers.control_plane import kubeconfig
from tests.support.peers.processes import until

NAME = "vgpuctl"
USER = f"system:serviceaccount:{NAME}:{NAME}"


@dataclass(frozen=True)
class Account:
    """`kubeconfig`: with a token of the account. `printed`: what the command printed."""

    cluster: Cluster
    kubeconfig: Path
    printed: str

    @classmethod
    def of(cls, cluster: Cluster) -> Account:
        """Make the account, as the page of rights says: with the printed file."""
        words = [sys.executable, "-m", "vgpuctl", "rights", "kubernetes"]
        printed = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout
        path = cluster.kubeconfig.parent / "account"
        found = cls(cluster, path, printed)
        found._apply(printed)
        token = cluster.kubectl("create", "token", NAME, "-n", NAME)
        assert token.returncode == 0, token.stderr
        path.write_text(json.dumps(kubeconfig(cluster.port, token.stdout.strip(), cluster.ca)))
        until(lambda: found.may(Asked("patch", "", "nodes", "", "")), what="the account has its rights")
        return found

    def may(self, asked: Asked) -> bool:
        """True if the API server says so."""
        resource, _, subresource = asked.resource.partition("/")
        attributes = {"verb": asked.verb, "group": asked.group, "resource": resource, "subresource": subresource}
        attributes |= {"namespace": asked.namespace, "name": asked.name}
        review = {"spec": {"user": USER, "resourceAttributes": attributes}}
        answer = self.cluster.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    def lose(self, *rights: Asked) -> None:
        """Apply the printed file without these rights. The server learns of a changed role a moment later."""
        documents = list(yaml.safe_load_all(self.printed))
        for each in documents:
            if "rules" in each:
                reduced = (_without(rule, rights) for rule in each["rules"])
                each["rules"] = [rule for rule in reduced if rule["verbs"]]
        self._apply(yaml.safe_dump_all(documents))
        until(lambda: not any(map(self.may, rights)), what=f"it has lost {rights}")

    def regain(self, *rights: Asked) -> None:
        self._apply(self.printed)
        until(lambda: all(map(self.may, rights)), what=f"it has {rights} again")

    def _apply(self, text: str) -> None:
        path = self.cluster.kubeconfig.parent / "rights.yaml"
        path.write_text(text)
        done = self.cluster.kubectl("apply", "-f", str(path))
        assert done.returncode == 0, done.stderr


def _without(rule: Object, rights: tuple[Asked, ...]) -> Object:
    """Return the rule without the verbs of these rights."""
    lost = {each.verb for each in rights if each.group in rule["apiGroups"] and each.resource in rule["resources"]}
    return rule | {"verbs": [verb for verb in rule["verbs"] if verb not in lost]}

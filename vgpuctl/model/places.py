"""What a pod asks of its node, and what a node gives: enough to say where a pod may *not* run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from vgpuctl.model.selectors import Requirement, Selector

Amounts = tuple[tuple[str, int], ...]
#: A term of a required node affinity: what it asks of a node's labels, and of its fields.
Term = tuple[tuple[Requirement, ...], tuple[Requirement, ...]]


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint that keeps new pods away. PreferNoSchedule does not, so it is left out."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration. An empty key means all keys, an empty effect all effects."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def covers(self, taint: Taint) -> bool:
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The needs of a pod, and of every replacement that looks like it.

    `requests`: the least it asks for, in thousandths.
    `terms`: one of them must hold; None: any node will do.
    """

    requests: Amounts = ()
    labels: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    priority: int = 0

    def choose(self, name: str, labels: Mapping[str, str]) -> bool:
        """True if the pod may run on a node of this name with these labels.

        A term that asks for nothing matches nothing.
        """
        if any(labels.get(key) != value for key, value in self.labels):
            return False
        fields = {"metadata.name": name}
        return self.terms is None or any(
            Selector(expressions=asked).matches(labels) and Selector(expressions=named).matches(fields)
            for asked, named in self.terms
            if asked or named
        )

    def tolerate(self, taint: Taint) -> bool:
        return any(toleration.covers(taint) for toleration in self.tolerations)


@lru_cache(4096)
def shared(needs: Needs) -> Needs:
    """Return the same object for equal needs: thousands of pods are of few kinds."""
    return needs

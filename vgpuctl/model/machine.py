"""The Machine that represents a worker's VM in Cluster API, and the mark that keeps its health checks off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.model.record import MARKS_ANNOTATION

#: Our own name for the mark, and Cluster API's annotation, for which any value will do.
SHIELD = "skip-remediation"
SHIELD_ANNOTATION = f"cluster.x-k8s.io/{SHIELD}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A Machine of Cluster API.

    `path`: where the API server has it. `uuid`: the VM's, as far as the Machine states it.
    `shielded`: no health check may have it replaced, whichever program said so. `ours`: we said so, so the mark is ours
    to take off.
    """

    path: str
    namespace: str
    name: str
    version: str = ""
    uuid: str = ""
    shielded: bool = False
    ours: bool = False

    @property
    def called(self) -> str:
        return f"{self.namespace}/{self.name}"


def is_shielded(annotations: Mapping[str, str]) -> bool:
    return SHIELD_ANNOTATION in annotations


def is_ours(annotations: Mapping[str, str]) -> bool:
    """True if the mark is ours.

    If marks cannot be read, none is ours: what may be another program's is not taken off.
    """
    try:
        # Decision 0014: read from the Machine, because a deleted node registers anew without our annotations.
        return SHIELD in bounded.names(annotations.get(MARKS_ANNOTATION, ""), MARKS_ANNOTATION)
    except UnreadableError:
        return False


def shield_annotations(*, shield: bool) -> dict[str, str | None]:
    """Return the annotations of the mark, which name its owner from the first moment."""
    return {SHIELD_ANNOTATION: "true" if shield else None, MARKS_ANNOTATION: SHIELD if shield else None}

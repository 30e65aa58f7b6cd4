"""What stands for a worker's VM in Cluster API, and the mark that keeps its health checks off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vgpuctl.model import bounded
from vgpuctl.model.bounded import UnreadableError
from vgpuctl.model.record import MARKS_ANNOTATION

#: By our own name, and by that of Cluster API, for which any value will do.
SHIELD = "skip-remediation"
SHIELD_ANNOTATION = f"cluster.x-k8s.io/{SHIELD}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """`path`: where the API server has it. `uuid`: the VM's, as far as it says so. `shielded`: no health check may have
    it replaced, by whomever that was said; `ours`: by us, so it is ours to take off."""

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
    """Of marks that cannot be read none is ours: what may be another's is not taken off."""
    try:
        return SHIELD in bounded.names(annotations.get(MARKS_ANNOTATION, ""), MARKS_ANNOTATION)
    except UnreadableError:
        return False


def shield_annotations(*, shield: bool) -> dict[str, str | None]:
    """Whose it is stands beside it from the first moment."""
    return {SHIELD_ANNOTATION: "true" if shield else None, MARKS_ANNOTATION: SHIELD if shield else None}

"""What the engine may ask of the two servers: plain data, sent by the outer layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vgpuctl.model.machine import Machine
from vgpuctl.model.pods import Pod
from vgpuctl.model.record import MARK_ANNOTATIONS, MARK_LABELS, STATE_LABEL, Record, record_annotations
from vgpuctl.model.workloads import Scaled, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchNode:
    """Change labels, annotations or the cordon of a node. `version`: refuse if the node changed since we looked."""

    node: str
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    unschedulable: bool | None = None
    # Decision 0002: with the resourceVersion, the server refuses if somebody cordoned the node since our look.
    version: str | None = None

    @classmethod
    def recording(cls, node: str, record: Record | None, former: Record | None = None, **changes: object) -> PatchNode:
        """Return a patch that writes our record instead of the former one, its label included, with other changes.

        The label is for people. The marks of the new record come with it, and the marks of the former one go.
        """
        marks = {
            **dict.fromkeys(former.marks if former else ()),
            **dict.fromkeys(record.marks if record else (), "true"),
        }
        labels = {MARK_LABELS[mark]: value for mark, value in marks.items() if mark in MARK_LABELS}
        labels |= {STATE_LABEL: record.state if record else None, **changes.pop("labels", {})}  # type: ignore[dict-item]
        annotations = {MARK_ANNOTATIONS[mark]: value for mark, value in marks.items() if mark in MARK_ANNOTATIONS}
        annotations |= record_annotations(record)
        return cls(node=node, labels=labels, annotations=annotations, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleWorkload:
    """Set a workload's size (None leaves it alone) and our mark in one patch; refuse if it changed since we looked."""

    # Decision 0013: the `scale` subresource would need fewer rights, but it cannot carry the mark.
    workload: Workload
    replicas: int | None
    scaled: Scaled | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchMachine:
    """Put our mark on the Machine, or take it off; refuse if the Machine changed since we looked."""

    worker: str
    machine: Machine
    shield: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """Evict a pod. `budgets`: the names of the budgets that cover it."""

    # kubernetes#138229: a drain evicted the wrong pod after a name was reused. So each eviction names the pod's UID.
    pod: Pod
    grace_period_s: int | None = None
    budgets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod:
    """Delete a pod against its budgets, because a timetable says so; with the grace that it is given."""

    pod: Pod
    grace_period_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """Check before a worker stops: list its node's pods again, and refuse if `expected` leaves one of them out."""

    # Decision 0015: the list asks for metadata alone, because it compares UIDs.
    node: str
    expected: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendVm:
    worker: str
    vm: str
    first: Confirm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutDownGuest:
    """Ask the guest to shut down. `or_power_off`: power the VM off if no tools answer in the guest."""

    # vSphere: ShutdownGuest needs running VMware Tools (else ToolsUnavailable).
    worker: str
    vm: str
    first: Confirm | None = None
    or_power_off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOffVm:
    worker: str
    vm: str
    first: Confirm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOnVm:
    worker: str
    vm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachVgpus:
    """Replace all vGPUs of a powered-off VM by these, in one reconfigure, with all its memory reserved.

    `mmio_gib`: the address space that their cards need; 0 leaves the VM's settings alone.
    """

    # vSphere: a vGPU needs all memory of its VM reserved. To replace one is remove and add in one ReconfigVM_Task.
    worker: str
    vm: str
    vgpus: tuple[str, ...]
    mmio_gib: int = 0


Patch = PatchNode | PatchMachine | ScaleWorkload
Request = Patch | Evict | DeletePod | SuspendVm | ShutDownGuest | PowerOffVm | PowerOnVm | AttachVgpus

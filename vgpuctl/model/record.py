"""What we write on a node before we touch it, so that a crash loses no intention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vgpuctl.basics import bounded
from vgpuctl.basics.change import changed

PREFIX = "vgpuctl.io/"
STATE_LABEL = PREFIX + "state"

#: Set on a pod by its owner: `freeze`.
ON_SWITCH = PREFIX + "on-switch"

#: Labels that say what a node's VM carries, for label selectors.
CARD = PREFIX + "card"
FRAME = PREFIX + "frame-mib"
HOST = PREFIX + "host"
VGPU = PREFIX + "vgpu"
FACT_LABELS = (CARD, FRAME, HOST, VGPU)

#: Our names for marks that other programs read on a node: do not count its silence, do not remove it.
EXCLUDED, KEPT = "exclude-disruption", "scale-down-disabled"
#: Kubernetes: three or more NotReady nodes, at least 55 % of a zone, stop evictions in the whole zone.
#: The cluster autoscaler counts silent nodes as broken.
MARK_LABELS = {EXCLUDED: "node.kubernetes.io/exclude-disruption"}
MARK_ANNOTATIONS = {KEPT: "cluster-autoscaler.kubernetes.io/scale-down-disabled"}
MARKS = (EXCLUDED, KEPT)

#: Which of the marks on the node are ours.
MARKS_ANNOTATION = PREFIX + "marks"

LEAVING = "leaving"
ASLEEP = "asleep"

#: What the annotation says for a VM that carried nothing.
NO_VGPUS = "none"

_FIELDS = {
    "wish": PREFIX + "for",
    "since": PREFIX + "since",
    "cordoned": PREFIX + "cordoned",
    "awake_before": PREFIX + "awake-before",
    "vgpus_before": PREFIX + "vgpus-before",
    "lease": PREFIX + "last-lease",
    "heartbeat": PREFIX + "last-heartbeat",
    "until": PREFIX + "until",
    "why": PREFIX + "why",
    "marks": MARKS_ANNOTATION,
}


@dataclass(frozen=True, kw_only=True)
class Record:
    """Our mark on a node: for which wish, what must be given back, and the last signs of life before the sleep.

    `vgpus_before`: what its VM carried before; None if its devices are not to be changed. `until`, `why`: for people
    that look at the sleeping node. `marks`: the MARKS that are ours to take off.
    """

    # Decision 0002: written in the same patch as the cordon, so no node is cordoned without a known reason.
    wish: str
    state: str
    since: str
    cordoned: bool = False
    # Decision 0002: written on each leaving node, so that one of them is enough after a crash.
    awake_before: tuple[str, ...] = ()
    vgpus_before: tuple[str, ...] | None = None
    # Decision 0003: only signs of life other than these say that the node is back.
    lease: str | None = None
    heartbeat: str | None = None
    until: str = ""
    why: str = ""
    marks: tuple[str, ...] = ()

    def asleep(self, *, since: str, lease: str | None, heartbeat: str | None) -> Record:
        return changed(self, state=ASLEEP, since=since, lease=lease, heartbeat=heartbeat)


def read_record(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Record | None:
    """Return the record that a node bears; None if it bears none of ours.

    UnreadableError if we would not write it so.
    """
    if _FIELDS["wish"] not in annotations:
        return None

    def text(name: str) -> str:
        return bounded.text(annotations.get(_FIELDS[name], ""), _FIELDS[name])

    def names(name: str) -> tuple[str, ...]:
        return bounded.names(annotations.get(_FIELDS[name], ""), _FIELDS[name])

    return Record(
        wish=text("wish"),
        state=labels.get(STATE_LABEL, ""),
        since=text("since"),
        cordoned=annotations.get(_FIELDS["cordoned"]) == "true",
        awake_before=names("awake_before"),
        vgpus_before=_vgpus(names("vgpus_before")) if _FIELDS["vgpus_before"] in annotations else None,
        lease=text("lease") or None,
        heartbeat=text("heartbeat") or None,
        until=text("until"),
        why=text("why"),
        marks=tuple(mark for mark in names("marks") if mark in MARKS),
    )


def record_annotations(record: Record | None) -> dict[str, str | None]:
    """Return the annotations that write `record`, or that take all of ours off again."""
    if record is None:
        return dict.fromkeys(_FIELDS.values())
    return {
        _FIELDS["wish"]: record.wish,
        _FIELDS["since"]: record.since,
        _FIELDS["cordoned"]: "true" if record.cordoned else None,
        _FIELDS["awake_before"]: ",".join(record.awake_before),
        _FIELDS["vgpus_before"]: _text(record.vgpus_before),
        _FIELDS["lease"]: record.lease,
        _FIELDS["heartbeat"]: record.heartbeat,
        _FIELDS["until"]: record.until or None,
        _FIELDS["why"]: record.why or None,
        _FIELDS["marks"]: ",".join(record.marks) or None,
    }


def marks_on(labels: Mapping[str, str], annotations: Mapping[str, str]) -> frozenset[str]:
    """Return the MARKS that a node bears, whichever program set them."""
    by_label = {mark for mark, key in MARK_LABELS.items() if key in labels}
    return frozenset(by_label | {mark for mark, key in MARK_ANNOTATIONS.items() if annotations.get(key) == "true"})


def _text(vgpus: tuple[str, ...] | None) -> str | None:
    return None if vgpus is None else ",".join(vgpus) or NO_VGPUS


def _vgpus(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(vgpu for vgpu in names if vgpu != NO_VGPUS)

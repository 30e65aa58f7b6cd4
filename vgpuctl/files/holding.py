"""A timetable's `hold_while`: the pods that hold a switch back while they run."""

from __future__ import annotations

from typing import Any

from vgpuctl.files.labelled import NAMESPACE, read_labelled
from vgpuctl.files.reader import FileReader
from vgpuctl.model.pods import DO_NOT_DISRUPT, SAFE_TO_EVICT
from vgpuctl.model.timing import HoldWhile, PodSelector

#: Words for the annotations by which people keep Karpenter and cluster-autoscaler away from a pod.
WORDS = {"do_not_disrupt": DO_NOT_DISRUPT, "not_safe_to_evict": SAFE_TO_EVICT}
#: Each pod of a leaving worker is compared with each entry.
MOST_ENTRIES = 100


def parse_hold_while(reader: FileReader, value: Any) -> HoldWhile:
    """Return what holds a switch back; one entry or a list."""
    entries = value if isinstance(value, list) else [] if value is None else [value]
    pods, annotations = [], set()
    for number, entry in enumerate(reader.first_entries(entries, MOST_ENTRIES, "hold_while")):
        key = f"hold_while[{number}]" if isinstance(value, list) else "hold_while"
        if isinstance(entry, dict):
            pods.append(_pods(reader, reader.read_mapping(entry, key), key))
        elif isinstance(entry, str) and entry in WORDS:
            annotations.add(WORDS[entry])
        else:
            suggestion = reader.suggestion(str(entry), WORDS) if isinstance(entry, str) else ""
            usual = "a mapping such as {namespace: team-*, selector: app=training}"
            reader.add_fault(key, f"must be {', '.join(WORDS)} or {usual}{suggestion}")
    return HoldWhile(pods=tuple(choice for choice in pods if choice), annotations=frozenset(annotations))


def _pods(reader: FileReader, entry: dict[str, Any], key: str) -> PodSelector | None:
    found = read_labelled(reader, entry, key, NAMESPACE, "app=training")
    return PodSelector(namespace=found[0], selector=found[1]) if found else None

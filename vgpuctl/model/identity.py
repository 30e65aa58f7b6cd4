"""Which node is inside which VM: by the provider's id, by the system's uuid in either byte order, else by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vgpuctl.model.errors import RefusedError


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    name: str
    provider_uuid: str
    system_uuid: str


def swapped(uuid: str) -> str:
    """The same uuid with its first three fields in the other byte order, as some firmware shows it."""
    parts = uuid.split("-")
    if len(parts) != 5:
        return uuid
    turned = ["".join(reversed([part[i : i + 2] for i in range(0, len(part), 2)])) for part in parts[:3]]
    return "-".join([*turned, *parts[3:]])


def match(vms: Mapping[str, str], nodes: Iterable[NodeIdentity]) -> dict[str, str]:
    """VM name → node name, from VM name → BIOS uuid. Two nodes that claim one VM are refused, never guessed."""
    by_uuid: dict[str, set[str]] = {}
    names: set[str] = set()
    for node in nodes:
        names.add(node.name)
        for uuid in filter(None, {node.provider_uuid, node.system_uuid, swapped(node.system_uuid)}):
            by_uuid.setdefault(uuid.lower(), set()).add(node.name)
    found: dict[str, str] = {}
    for vm, uuid in vms.items():
        candidates = by_uuid.get(uuid.lower(), set()) or ({vm} & names)
        if len(candidates) > 1:
            raise RefusedError(
                f"The nodes {' and '.join(sorted(candidates))} both claim to be VM {vm}.",
                hint="Correct their spec.providerID, or delete the node that is stale.",
            )
        if candidates:
            found[vm] = candidates.pop()
    return found

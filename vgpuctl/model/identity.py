"""Which node is inside which VM: by the provider's id, by the system's uuid in either byte order, else by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    name: str
    provider_uuid: str
    system_uuid: str

    @property
    def uuids(self) -> frozenset[str]:
        return _uuids(self.provider_uuid, self.system_uuid)


@dataclass(frozen=True, slots=True)
class VmIdentity:
    moid: str
    name: str
    uuid: str


@cache
def _uuids(provider: str, system: str) -> frozenset[str]:
    """Asked for of each node at each look, and never another."""
    return frozenset(uuid.lower() for uuid in (provider, system, swapped(system)) if uuid)


def swapped(uuid: str) -> str:
    """The same uuid with its first three fields in the other byte order, as some firmware shows it."""
    parts = uuid.split("-")
    if len(parts) != 5:
        return uuid
    turned = ["".join(reversed([part[i : i + 2] for i in range(0, len(part), 2)])) for part in parts[:3]]
    return "-".join([*turned, *parts[3:]])


@dataclass(frozen=True, slots=True)
class Inside:
    """The node inside a VM, or why that cannot be told."""

    node: str | None = None
    doubt: str = ""


class NodeIndex:
    """All nodes, found by what tells which VM they are."""

    def __init__(self, nodes: Iterable[NodeIdentity]) -> None:
        self._names: set[str] = set()
        self._by_uuid: dict[str, set[str]] = {}
        for node in nodes:
            self._names.add(node.name)
            for uuid in node.uuids:
                self._by_uuid.setdefault(uuid, set()).add(node.name)

    def claiming(self, uuid: str) -> set[str]:
        """The nodes that say they are the VM with this uuid."""
        return self._by_uuid.get(uuid.lower(), set()) if uuid else set()

    def candidates(self, vm: VmIdentity) -> set[str]:
        return self.claiming(vm.uuid) or {vm.name} & self._names


def match(vms: Iterable[VmIdentity], nodes: NodeIndex) -> dict[str, Inside]:
    """VM id → the node inside. Two nodes that claim one VM, or two VMs for one node, are a doubt, never a guess."""
    known = list(vms)
    by_uuid = {vm.moid: nodes.claiming(vm.uuid) for vm in known}
    taken = set().union(*by_uuid.values())
    found = {vm.moid: by_uuid[vm.moid] or nodes.candidates(vm) - taken for vm in known}
    owners: dict[str, list[str]] = {}
    for vm in known:
        for node in found[vm.moid]:
            owners.setdefault(node, []).append(vm.name)
    return {vm.moid: _inside(vm, found[vm.moid], owners) for vm in known}


def _inside(vm: VmIdentity, candidates: set[str], owners: dict[str, list[str]]) -> Inside:
    if len(candidates) > 1:
        return Inside(doubt=f"the nodes {' and '.join(sorted(candidates))} both claim to be VM {vm.name}")
    for node in candidates:
        if len(owners[node]) > 1:
            return Inside(doubt=f"node {node} may be in any of the VMs {' and '.join(sorted(owners[node]))}")
        return Inside(node)
    return Inside()

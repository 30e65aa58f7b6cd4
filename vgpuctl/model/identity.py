"""Which node is inside which VM: by the provider's id, by the system's uuid in either byte order, else by name.

A kubelet writes its node's uuid itself, and also its provider's id if it registers itself. So a node that contradicts
itself or another node is a doubt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """The ids that a node states. `provider_uuid`: "" if its provider's id is not vSphere's."""

    name: str
    # Decision 0017: k3s, RKE and kubemark write provider's ids of their own, which say nothing about the VM.
    provider_uuid: str
    system_uuid: str

    @property
    def uuids(self) -> frozenset[str]:
        return _uuids(self.provider_uuid, self.system_uuid)

    @property
    def contradicts_itself(self) -> bool:
        """True if the node states both ids, and they belong to different machines."""
        provider, system = self.provider_uuid, self.system_uuid
        return bool(provider and system) and provider.lower() not in _uuids("", system)


@dataclass(frozen=True, slots=True)
class VmIdentity:
    moid: str
    name: str
    uuid: str


@lru_cache(16384)
def _uuids(provider: str, system: str) -> frozenset[str]:
    """Return the uuids that a node may go by. The result is cached: it is needed for each node at each look."""
    return frozenset(uuid.lower() for uuid in (provider, system, swapped(system)) if uuid)


def swapped(uuid: str) -> str:
    """Return the same uuid with its first three fields in the other byte order, as some firmware shows it."""
    parts = uuid.split("-")
    if len(parts) != 5:
        return uuid
    # Kubernetes: `status.nodeInfo.systemUUID` may have its first three fields byte-swapped.
    turned = ["".join(reversed([part[i : i + 2] for i in range(0, len(part), 2)])) for part in parts[:3]]
    return "-".join([*turned, *parts[3:]])


@dataclass(frozen=True, slots=True)
class Inside:
    """The node inside a VM, or why that cannot be decided. `claimants`: with a doubt, all nodes that may be inside."""

    node: str | None = None
    doubt: str = ""
    claimants: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,) if self.node else self.claimants


class NodeIndex:
    """All nodes, found by what identifies their VM."""

    def __init__(self, nodes: Iterable[NodeIdentity]) -> None:
        self._nodes: dict[str, NodeIdentity] = {}
        self._by_uuid: dict[str, set[str]] = {}
        for node in nodes:
            self._nodes[node.name] = node
            for uuid in node.uuids:
                self._by_uuid.setdefault(uuid, set()).add(node.name)

    def claiming(self, uuid: str) -> set[str]:
        """Return the nodes that claim to be the VM with this uuid."""
        return self._by_uuid.get(uuid.lower(), set()) if uuid else set()

    def named(self, vm: VmIdentity) -> NodeIdentity | None:
        """Return the node that has this VM's name."""
        return self._nodes.get(vm.name)

    def candidates(self, vm: VmIdentity) -> set[str]:
        """Return all nodes that may be inside, as far as the VM alone shows."""
        return self.claiming(vm.uuid) | ({vm.name} & self._nodes.keys())

    def contradiction(self, vm: VmIdentity, name: str) -> str:
        """Return why this node, which may be inside the VM, may be another machine; "" if nothing says so."""
        node = self._nodes[name]
        # Decision 0017: a node states its ids itself, so nodes are compared and none is believed alone.
        if node.contradicts_itself:
            return f"spec.providerID and systemUUID of node {name} name two different machines"
        if vm.uuid and node.uuids and vm.uuid.lower() not in node.uuids:
            return f"node {name} has the name of VM {vm.name}, but the uuid of another machine"
        return ""


def match(vms: Iterable[VmIdentity], nodes: NodeIndex) -> dict[str, Inside]:
    """Return the node inside each VM, by VM id.

    Every ambiguity is a doubt, never a guess: two nodes that claim one VM, two VMs for one node, or a node that names
    two machines.
    """
    known = list(vms)
    claimed = set().union(*(nodes.claiming(vm.uuid) for vm in known))
    found = {vm.moid: _candidates(vm, nodes, claimed) for vm in known}
    owners: dict[str, list[str]] = {}
    for vm in known:
        for node in found[vm.moid]:
            owners.setdefault(node, []).append(vm.name)
    return {vm.moid: _inside(vm, found[vm.moid], nodes, owners) for vm in known}


def _candidates(vm: VmIdentity, nodes: NodeIndex, claimed: set[str]) -> set[str]:
    """Return the nodes that may be inside this VM.

    A node of the VM's name counts unless its ids say that it is another machine. Nodes that claim to be this VM count
    too. Otherwise a foreign node that claims the uuid would win over the true node that states none.
    """
    by_uuid, named = nodes.claiming(vm.uuid), nodes.named(vm)
    if named is None or named.name in claimed or (by_uuid and named.uuids):
        return by_uuid
    return by_uuid | {named.name}


def _inside(vm: VmIdentity, candidates: set[str], nodes: NodeIndex, owners: dict[str, list[str]]) -> Inside:
    claimants = tuple(sorted(candidates))
    # Decision 0017: a kubelet writes its uuid itself, so a node that claims a foreign VM must never win.
    if len(claimants) > 1:
        both = "both" if len(claimants) == 2 else "all"
        return Inside(doubt=f"the nodes {' and '.join(claimants)} {both} claim to be VM {vm.name}", claimants=claimants)
    for node in claimants:
        if len(owners[node]) > 1:
            several = " and ".join(sorted(owners[node]))
            return Inside(doubt=f"node {node} may be in any of the VMs {several}", claimants=claimants)
        if why := nodes.contradiction(vm, node):
            return Inside(doubt=why, claimants=claimants)
        return Inside(node)
    return Inside()

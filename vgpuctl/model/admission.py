"""What HA admission control keeps free in one cluster of vSphere: it refuses starts that would take it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReservedShare:
    """A share of the cluster's memory. `level`: for how many hosts that fail vCenter reckons it by itself, and then
    `percent` may be an older one; 0 where a person set it."""

    percent: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class Slots:
    """Room for all that runs once `level` hosts have failed. `slot_mib` 0: as much as the largest reservation."""

    level: int
    slot_mib: int = 0


@dataclass(frozen=True, slots=True)
class Spares:
    """Whole hosts, by name: nothing starts there."""

    hosts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """`cluster`: its id, for names may be there twice. `places`: DRS may start a VM on another host than its own.

    `restarts`: does HA restart VMs after a failure? `otherwise`: the ids of those of which the contrary is said. Nobody
    says whether room is kept for those that it does not restart.
    """

    cluster: str
    policy: ReservedShare | Slots | Spares
    places: bool = False
    restarts: bool = True
    otherwise: frozenset[str] = frozenset()

    def counts(self, vm: str) -> bool:
        """Is room kept for this VM, for certain?"""
        return self.restarts != (vm in self.otherwise)

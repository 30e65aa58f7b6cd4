"""What HA admission control keeps free in one vSphere cluster: it refuses starts that would take it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReservedShare:
    """A share of the cluster's memory.

    `level`: for how many failing hosts the share is meant, if vCenter reckons it itself. Then `percent` may be out of
    date. 0: a person set `percent`.
    """

    percent: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class Slots:
    """Room for every running VM once `level` hosts have failed. `slot_mib` 0: as much as the largest reservation."""

    level: int
    slot_mib: int = 0


@dataclass(frozen=True, slots=True)
class FailoverPolicy:
    """Whole hosts, by name, on which nothing starts."""

    hosts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """HA admission control in one cluster.

    `cluster`: its id, since two clusters may have one name. `drs_moves`: DRS may start a VM on another host.
    `restarts`: whether HA restarts VMs after a failure. `exceptions`: the ids of VMs for which the opposite is set.
    It is not documented whether room is kept for VMs that HA does not restart.
    """

    cluster: str
    policy: ReservedShare | Slots | FailoverPolicy
    drs_moves: bool = False
    restarts: bool = True
    exceptions: frozenset[str] = frozenset()

    def counts(self, vm: str) -> bool:
        """True if room is certainly kept for this VM."""
        return self.restarts != (vm in self.exceptions)

"""What DRS may do with VMs: place them on another host when they start, or move them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Drs:
    """`clusters`: the names of clusters in which DRS places VMs. `held`: ids of VMs that it leaves where they are."""

    clusters: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()

    def may_place(self, vm: str, cluster: str) -> bool:
        # vSphere: under DRS a power-on, a resume included, may place the VM on another host (PowerOnVM_Task).
        # An override or a must-rule holds the VM; that `manual` holds it too is inferred.
        return cluster in self.clusters and vm not in self.held

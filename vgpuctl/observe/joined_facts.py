"""Facts that must be compared with something else before they are evidence.

A pod is compared with its owner, a VM with the Machines, and a Lease with our own clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from vgpuctl.basics.bounded import time
from vgpuctl.kube.views import SeenNode
from vgpuctl.model.fleet import Power
from vgpuctl.model.machine import Machine
from vgpuctl.model.pods import Pod
from vgpuctl.model.record import ASLEEP
from vgpuctl.vsphere.views import Vm


def overdue_s(pod: Pod, now: datetime) -> int:
    """Return for how many seconds the pod should have ended."""
    return max(0, int((now - time(pod.ends_by, "its end")).total_seconds())) if pod.ends_by else 0


@dataclass(frozen=True, slots=True)
class Owners:
    """What a pod alone does not show: is its DaemonSet gone, does its Job count evictions, is its end overdue?"""

    daemon_sets: frozenset[str] | None
    counting_jobs: frozenset[str]
    now: datetime

    def with_owner(self, pod: Pod) -> Pod:
        kind, _, name = (pod.owner or "").partition("/")
        owner = f"{pod.namespace}/{name}"
        # kubectl drain: such a pod is an error unless forced.
        if kind == "DaemonSet" and self.daemon_sets is not None and owner not in self.daemon_sets:
            pod = replace(pod, orphaned=True)
        # Kubernetes: an eviction may use up a Job's backoffLimit, so a plan names the Job.
        if kind == "Job" and owner in self.counting_jobs:
            pod = replace(pod, counted=True)
        late_s = overdue_s(pod, self.now)
        return replace(pod, overdue_s=late_s) if late_s else pod


class Machines:
    """Finds a VM's Machine by the name that its node states, else by the VM's uuid.

    A node may be deleted while its VM sleeps, or may just have registered anew.
    """

    def __init__(self, machines: Iterable[Machine]) -> None:
        self._by_name: dict[str, Machine] = {}
        self._by_uuid: dict[str, list[Machine]] = {}
        for machine in machines:
            self._by_name[machine.called] = machine
            if machine.uuid:
                self._by_uuid.setdefault(machine.uuid, []).append(machine)

    def of(self, vm: Vm, seen: SeenNode | None) -> Machine | None:
        if not self._by_name:
            return None
        # Decision 0014: a node that registers anew has lost its annotations. The VM's uuid still finds its Machine.
        by_name = self._by_name.get(seen.node.machine) if seen else None
        same_uuid = self._by_uuid.get(vm.uuid.lower(), [])
        return by_name or (same_uuid[0] if len(same_uuid) == 1 else None)


class Renewals(NamedTuple):
    """A kubelet's sign of life after a sleep.

    `lease_before_sleep`: the Lease recorded before the sleep. `first`: when another Lease was first seen.
    """

    lease_before_sleep: str | None
    first: datetime
    renewed: str | None
    alive_s: float


# Decision 0003: a sleep shorter than the node monitor's grace passes unnoticed. Then kubelet posts an unchanged
# status only every five minutes. Measured at rest: no heartbeat in 60 s, but a renewal every 10 s.
class KubeletLiveness:
    """For how long the kubelets of workers that slept have been seen to renew their Leases since.

    It is measured by our own clock: a guest's clock leaps when it is set right after a sleep.
    """

    def __init__(self) -> None:
        self._known: dict[str, Renewals] = {}

    def alive_s(self, vm: Vm, seen: SeenNode | None, renewed: str | None, now: datetime) -> float:
        """Return for how many seconds. The number grows with each renewal, and stays the same in between."""
        # Kubernetes: a Lease's renewTime is written by the guest's clock, which VMware Tools set after a resume.
        # So it is only compared for being another one.
        record = seen.node.record if seen and vm.power is Power.ON else None
        if record is None or record.state != ASLEEP or renewed == record.lease:
            self._known.pop(vm.outline.moid, None)
            return 0.0
        known = self._known.get(vm.outline.moid)
        if known is None or known.lease_before_sleep != record.lease:
            known = Renewals(record.lease, now, renewed, 0.0)
        elif known.renewed != renewed:
            known = known._replace(renewed=renewed, alive_s=(now - known.first).total_seconds())
        self._known[vm.outline.moid] = known
        return known.alive_s

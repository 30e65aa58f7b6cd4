"""How long the product takes a node for not truly back: its own reading of Lease and node, over either cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from tests.support.peers.clusters import Cluster
from vgpuctl.basics.change import changed
from vgpuctl.kube import views
from vgpuctl.kube.views import SeenNode
from vgpuctl.model.fleet import Power, Worker
from vgpuctl.model.record import ASLEEP, Record
from vgpuctl.observe.joined_facts import KubeletLiveness
from vgpuctl.planning.steps.returning import missing_signs
from vgpuctl.vsphere.views import Outline, Vm


@dataclass
class Returning:
    """A node that was marked when its machine stood still. Its GPUs are another subject."""

    cluster: Cluster
    name: str
    record: Record
    _liveness: KubeletLiveness = field(default_factory=KubeletLiveness)

    @classmethod
    def of(cls, cluster: Cluster, name: str) -> Self:
        heartbeat = views.node(cluster.node(name)).node.heartbeat
        record = Record(wish="night", state=ASLEEP, since="", lease=_renewed(cluster, name), heartbeat=heartbeat)
        return cls(cluster, name, record)

    def missing(self) -> str:
        """The first sign that is still missing; "" when it is truly back."""
        raw, renewed = views.node(self.cluster.node(self.name)), _renewed(self.cluster, self.name)
        seen = SeenNode(raw.identity, changed(raw.node, record=self.record))
        vm = Vm(outline=Outline(moid=self.name, name=self.name), power=Power.ON)
        alive_s = self._liveness.alive_s(vm, seen, renewed, datetime.now(UTC))
        node = changed(seen.node, lease_renewed=renewed, alive_s=alive_s)
        return missing_signs(Worker(name=self.name, vm=self.name, host="", power=Power.ON, node=node))

    def posted(self) -> bool:
        """True if the kubelet has posted its status since."""
        return views.node(self.cluster.node(self.name)).node.heartbeat != self.record.heartbeat


def _renewed(cluster: Cluster, name: str) -> str | None:
    lease = cluster.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}")
    return views.renewal(lease).time

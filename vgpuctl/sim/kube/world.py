"""The simulated Kubernetes without any wire: objects, controllers and kubelets in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.kube.budgets import Budgets
from vgpuctl.sim.kube.clusterapi import ClusterApi
from vgpuctl.sim.kube.daemonsets import DaemonSets
from vgpuctl.sim.kube.deployments import Deployments
from vgpuctl.sim.kube.founding import Founding
from vgpuctl.sim.kube.garbage import GarbageCollector
from vgpuctl.sim.kube.ground import Ground
from vgpuctl.sim.kube.jobs import Jobs
from vgpuctl.sim.kube.kinds import CUSTOM, KINDS
from vgpuctl.sim.kube.kubelets import Kubelets
from vgpuctl.sim.kube.lifecycle import NodeLifecycle
from vgpuctl.sim.kube.quotas import Quotas
from vgpuctl.sim.kube.replicasets import ReplicaSets
from vgpuctl.sim.kube.scheduler import Scheduler
from vgpuctl.sim.kube.settling import Settler
from vgpuctl.sim.kube.statefulsets import StatefulSets
from vgpuctl.sim.kube.store import Store
from vgpuctl.sim.kube.taints import TaintEviction
from vgpuctl.sim.kube.volumes import Volumes


class KubernetesWorld:
    """A cluster with a node for each VM that has one. It hears of the VMs' power as the vCenter's `Guests`."""

    def __init__(
        self,
        clock: Clock,
        inventory: Inventory,
        durations: Durations,
        *,
        seed: int = 1,
    ) -> None:
        chance = random.Random(seed)  # noqa: S311 names of pods are no secrets
        self.clock = clock
        self.store = Store(clock, chance)
        self.kinds = KINDS + (CUSTOM if inventory.cluster_api else ())
        self.ground = Ground(clock, self.store)
        self.kubelets = Kubelets(self.ground, inventory, durations, chance)
        scheduler = Scheduler(self.ground)
        self.controllers = (
            NodeLifecycle(self.ground, durations),
            TaintEviction(self.ground),
            scheduler,
            Deployments(self.ground),
            ReplicaSets(self.ground),
            StatefulSets(self.ground),
            DaemonSets(self.ground),
            Jobs(self.ground),
            Volumes(self.ground),
            Budgets(self.ground),
            Quotas(self.ground),
            GarbageCollector(self.ground),
        )
        if inventory.cluster_api:
            self.cluster_api = ClusterApi(self.ground, durations)
        settler = Settler(self.ground, scheduler.board, self.kubelets)
        self.founding = Founding(self.ground, inventory, self.kubelets, settler)

    def boot(self, vm: str, gpus: int) -> None:
        self.kubelets.machine(vm).boot(gpus)

    def freeze(self, vm: str) -> None:
        self.kubelets.machine(vm).freeze()

    def thaw(self, vm: str) -> None:
        self.kubelets.machine(vm).thaw()

    def halt(self, vm: str) -> None:
        self.kubelets.machine(vm).halt()

    def shut_down(self, vm: str, then: Callable[[], None]) -> None:
        self.kubelets.machine(vm).shut_down(then)

    def running(self, vm: str) -> bool:
        return self.kubelets.machine(vm).running

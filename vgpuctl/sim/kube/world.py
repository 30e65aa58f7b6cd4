"""The simulated Kubernetes without HTTP: objects, controllers and kubelets in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.sim.kube.api.kinds import CUSTOM, KINDS
from vgpuctl.sim.kube.controllers.budgets import Budgets
from vgpuctl.sim.kube.controllers.cloud_provider import CloudProvider
from vgpuctl.sim.kube.controllers.cluster_api import ClusterApi
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.daemonsets import DaemonSets
from vgpuctl.sim.kube.controllers.deployments import Deployments
from vgpuctl.sim.kube.controllers.garbage import GarbageCollector
from vgpuctl.sim.kube.controllers.initial_objects import InitialObjects
from vgpuctl.sim.kube.controllers.jobs import Jobs
from vgpuctl.sim.kube.controllers.lifecycle import NodeLifecycle
from vgpuctl.sim.kube.controllers.preplaced_pods import PodPlacer
from vgpuctl.sim.kube.controllers.quotas import Quotas
from vgpuctl.sim.kube.controllers.replicasets import ReplicaSets
from vgpuctl.sim.kube.controllers.scheduler import Scheduler
from vgpuctl.sim.kube.controllers.statefulsets import StatefulSets
from vgpuctl.sim.kube.controllers.taints import TaintEviction
from vgpuctl.sim.kube.controllers.volumes import Volumes
from vgpuctl.sim.kube.machines.kubelets import Kubelets
from vgpuctl.sim.kube.store import Store


class KubernetesWorld:
    """A cluster with a node for each VM that has one. As the vCenter's `Guests` it follows the VMs' power."""

    def __init__(
        self,
        clock: Clock,
        inventory: Inventory,
        durations: Durations,
        *,
        seed: int = 1,
    ) -> None:
        rng = random.Random(seed)  # noqa: S311 names of pods are no secrets
        self.clock = clock
        self.store = Store(clock, rng)
        # Decision 0014: estates without Cluster API have no Machines, and pay no call for them.
        self.kinds = KINDS + (CUSTOM if inventory.cluster_api else ())
        self.context = ControllerContext(clock, self.store)
        self.kubelets = Kubelets(self.context, inventory, durations, rng)
        scheduler = Scheduler(self.context)
        self.controllers = (
            NodeLifecycle(self.context, durations),
            TaintEviction(self.context),
            scheduler,
            Deployments(self.context),
            ReplicaSets(self.context),
            StatefulSets(self.context),
            DaemonSets(self.context, scheduler.capacity),
            Jobs(self.context),
            Volumes(self.context),
            Budgets(self.context),
            Quotas(self.context),
            GarbageCollector(self.context),
        )
        if inventory.cluster_api:
            self.cluster_api = ClusterApi(self.context, durations)
        if inventory.cloud_provider:
            self.cloud_provider = CloudProvider(self.context, self.kubelets)
        placer = PodPlacer(self.context, scheduler.capacity, self.kubelets)
        self.initial_objects = InitialObjects(self.context, inventory, self.kubelets, placer)

    def boot(self, vm: str, gpus: int) -> None:
        self.kubelets.machine(vm).boot(gpus)

    def freeze(self, vm: str) -> None:
        self.kubelets.machine(vm).freeze()

    def thaw(self, vm: str) -> None:
        self.kubelets.machine(vm).thaw()

    def halt(self, vm: str) -> None:
        self.kubelets.machine(vm).halt()

    def remove(self, vm: str) -> None:
        self.kubelets.machine(vm).exists = False

    def shut_down(self, vm: str, then: Callable[[], None]) -> None:
        self.kubelets.machine(vm).shut_down(then)

    def running(self, vm: str) -> bool:
        return self.kubelets.machine(vm).running

"""Joins two streams into one picture: VMs, hosts and tasks from vCenter, nodes and pods from Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from vgpuctl.basics.change import changed
from vgpuctl.basics.memo import Memo
from vgpuctl.kube.views import SeenNode
from vgpuctl.model.fleet import Fleet, Node, Power, Stranger, Worker
from vgpuctl.model.hosts import Card, Host, TypeFacts
from vgpuctl.model.identity import Inside, NodeIndex, VmIdentity, match
from vgpuctl.model.pods import Pod
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.record import FACT_LABELS
from vgpuctl.observe.choosing import Chooser, Chosen
from vgpuctl.observe.joined_facts import KubeletLiveness, Owners
from vgpuctl.observe.snapshot import KubernetesSeen, Snapshot, VcenterSeen, WorkerParts
from vgpuctl.planning.cards.boards import type_of
from vgpuctl.vsphere.views import Outline, Vm


class FleetBuilder:
    """Builds the fleet again and again; what did not change stays the same object.

    `host_types`: what a host says of vGPU types, if one was asked. What the file says counts before that.
    """

    def __init__(self, catalogue: Catalogue, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.catalogue, self._now = catalogue, now
        self.host_types: tuple[TypeFacts, ...] = ()
        self._chooser = Chooser(catalogue)
        # Decision 0015: which VM holds which node, and what the files want of it, is worked out only after a change.
        self._inside: Memo[dict[str, Inside]] = Memo()
        self._hosts: Memo[Host] = Memo()
        self._workers: Memo[Worker] = Memo()
        self._nodes: Memo[Node] = Memo()
        self._liveness = KubeletLiveness()

    def use(self, catalogue: Catalogue) -> None:
        """Build by this catalogue from now on. What is known of kubelets and labels stays known."""
        self.catalogue = catalogue
        self._chooser.use(catalogue)

    def possible_workers(self, vms: list[Outline], nodes: Iterable[SeenNode]) -> list[Outline]:
        """Return the VMs that may be workers, as far as their outlines show."""
        if not self.catalogue.asks_labels:
            return [vm for vm in vms if self._chooser.may_be_worker(vm, ())]
        seen = {node.identity.name: node for node in nodes}
        # Decision 0017: a node may claim a VM by uuid, in either byte order, or by name.
        index = NodeIndex(node.identity for node in seen.values())

        def inside(vm: Outline) -> Iterable[SeenNode]:
            return (seen[name] for name in index.candidates(VmIdentity(vm.moid, vm.name, vm.uuid)))

        return [vm for vm in vms if self._chooser.may_be_worker(vm, inside(vm))]

    def learn(self, nodes: Iterable[SeenNode]) -> None:
        """Learn from nodes that are reported between two looks, too."""
        self._chooser.learn(nodes)

    def _match(self, vms: Mapping[str, Vm], nodes: Iterable[SeenNode]) -> dict[str, Inside]:
        """Match nodes to VMs. This is done again only after a VM or a node came, went or changed its identity."""
        identities = [seen.identity for seen in nodes]
        named = [(moid, vm.outline.name, vm.uuid) for moid, vm in vms.items()]
        return self._inside.of(
            "all", (named, identities), lambda: match((VmIdentity(*vm) for vm in named), NodeIndex(identities))
        )

    def unknown_types(self, vms: Iterable[Vm]) -> set[str]:
        """Return the vGPU types of files and VMs whose frame neither their names nor the file give."""
        types = {vgpu for profile in self.catalogue.profiles.values() for vgpu in profile.vgpus}
        types |= {vgpu for vm in vms for vgpu in vm.vgpus}
        return {vgpu for vgpu in types if type_of(vgpu, self.catalogue.type_facts).gib is None}

    def build(self, vcenter: VcenterSeen, kubernetes: KubernetesSeen) -> Fleet:
        snapshot = Snapshot.of(vcenter, kubernetes)
        by_id = self._workers_in(snapshot)
        workers = {worker.name: worker for worker in by_id.values()}
        others = (vm for moid, vm in snapshot.vms.items() if moid not in by_id)
        # vSphere: a VM outside the plan may take a freed card, and its memory counts.
        strangers = _strangers(others, snapshot.hosts, workers)
        names = {moid: worker.name for moid, worker in by_id.items()}
        names |= {moid: stranger.name for moid, stranger in strangers.items()}
        type_facts = self._type_facts(snapshot.vms.values())
        return Fleet(
            hosts={host.name: self._completed(host, names, type_facts) for host in snapshot.hosts.values()},
            workers=workers,
            budgets=tuple(kubernetes.budgets()),
            # Kubernetes: pods for the night's profile are Pending all day, and people ask why.
            waiting=tuple(pod for pod in snapshot.pods if pod.node is None and pod.phase == "Pending"),
            strangers={stranger.name: stranger for stranger in strangers.values()},
            strays={stray.name: stray for stray in _strays(snapshot.nodes.values(), workers)},
            # What a budget keeps must find room on nodes that stay awake (architecture.md, Budgets and workloads).
            elsewhere=tuple(self._elsewhere(snapshot.nodes, snapshot.pods_on, workers)),
            workloads=kubernetes.workloads(),
            unseen=kubernetes.unseen(),
            unreadable=snapshot.unreadable.without_workers(by_id),
            datastores=snapshot.datastores,
            missing=tuple(name for name in self.catalogue.named if name not in workers),
        )

    def _workers_in(self, snapshot: Snapshot) -> dict[str, Worker]:
        """Return the workers by the ids of their VMs. All workers of one name are in doubt."""
        inside, now = self._match(snapshot.vms, snapshot.nodes.values()), self._now()
        self.learn(snapshot.nodes.values())
        chosen = {
            moid: self._chooser.of(vm.outline, tuple(snapshot.nodes[name] for name in inside[moid].nodes))
            for moid, vm in snapshot.vms.items()
        }
        workers: dict[str, Worker] = {}
        for moid, namesakes in _namesakes(snapshot.vms, chosen).items():
            parts = snapshot.parts(moid, inside[moid], chosen[moid], now, namesakes=namesakes)
            workers[moid] = self._workers.of(moid, parts, partial(self._built, parts, now))
        return workers

    def _built(self, parts: WorkerParts, now: datetime) -> Worker:
        """Return the worker in this VM. Everything that time changes is in `parts`."""
        vm, rules = parts.vm, parts.chosen.rules
        alive_s = self._liveness.alive_s(vm, parts.seen, parts.lease_renewed, now)
        owners = Owners(parts.daemon_sets, parts.counting_jobs, now)
        return Worker(
            name=_name(parts),
            vm=vm.outline.moid,
            host=parts.host,
            power=vm.power,
            shutting_down=vm.shutting_down,
            profile=rules[0].profile,
            chosen_at=tuple(rule.where for rule in rules),
            vgpus=vm.vgpus,
            memory_mib=vm.memory_mib,
            memory_locked=vm.memory_locked,
            datastore=vm.datastore,
            mmio=vm.mmio,
            fixed_devices=vm.fixed_devices,
            tracing=vm.tracing,
            managed_by=vm.managed_by,
            question=vm.question,
            tasks=parts.tasks or (),
            node=_node(parts, alive_s, owners),
            machine=parts.machine,
            doubts=(*_doubts(parts), *parts.unreadable),
        )

    def _completed(self, host: Host, names: Mapping[str, str], type_facts: tuple[TypeFacts, ...]) -> Host:
        """Return the completed host.

        It is made again only after the host, or the name of a VM on its cards, changed.
        """
        made_of = host, type_facts, [names.get(moid) for card in (*host.cards, *host.unshared) for moid in card.holds]
        return self._hosts.of(host.name, made_of, lambda: _completed(host, names, type_facts))

    def _type_facts(self, vms: Iterable[Vm]) -> tuple[TypeFacts, ...]:
        if not self.host_types:
            return self.catalogue.type_facts
        unknown = self.unknown_types(vms)
        return (*self.catalogue.type_facts, *(each for each in self.host_types if each.vgpu in unknown))

    def _elsewhere(
        self, nodes: Mapping[str, SeenNode], pods: Mapping[str, tuple[Pod, ...]], workers: Mapping[str, Worker]
    ) -> Iterable[Node]:
        """Yield the nodes that are no worker's, with their pods. They may be places for pods that leave."""
        inside = {worker.node.name for worker in workers.values() if worker.node}
        for name in nodes.keys() - inside:
            node, pods_here = nodes[name].node, pods.get(name, ())
            yield self._nodes.of(name, (node, pods_here), partial(changed, node, pods=pods_here))


def _namesakes(vms: Mapping[str, Vm], chosen: Mapping[str, Chosen]) -> dict[str, tuple[str, ...]]:
    """Return the ids of all workers of the same name for each chosen VM; () if its name is its own."""
    # vSphere: a VM's name is unique in its folder only.
    by_name: dict[str, list[str]] = {}
    for moid, vm in vms.items():
        if chosen[moid].rules:
            by_name.setdefault(vm.outline.name, []).append(moid)
    return {moid: tuple(moids) if len(moids) > 1 else () for moids in by_name.values() for moid in moids}


def _name(parts: WorkerParts) -> str:
    """Return the worker's name. Of several workers of one name, all but the first are told apart by their ids."""
    outline = parts.vm.outline
    return f"{outline.name} ({outline.moid})" if outline.moid in parts.namesakes[1:] else outline.name


def _node(parts: WorkerParts, alive_s: float, owners: Owners) -> Node | None:
    if parts.seen is None:
        return None
    pods, disks = tuple(owners.with_owner(pod) for pod in parts.pods), tuple(parts.disks or ())
    known = {"lease_renewed": parts.lease_renewed, "alive_s": alive_s, "hold": parts.hold}
    return changed(parts.seen.node, pods=pods, disks=disks, **known)


def _doubts(parts: WorkerParts) -> Iterable[str]:
    rules, doubt = parts.chosen
    if parts.namesakes:
        yield f"several VMs of vCenter have the name {parts.vm.outline.name}"
    if len(rules) > 1:
        yield f"two entries of profiles.yaml give it different profiles: {' and '.join(rule.where for rule in rules)}"
    yield from filter(None, (parts.doubt, doubt))


def _strangers(vms: Iterable[Vm], hosts: Mapping[str, Host], workers: Mapping[str, Worker]) -> dict[str, Stranger]:
    """Return the strangers by their ids. A stranger that shares its name with another VM is named by its id."""
    found: dict[str, Stranger] = {}
    taken = set(workers)
    for vm in vms:
        outline = vm.outline
        name = f"{outline.name} ({outline.moid})" if outline.name in taken else outline.name
        taken.add(name)
        host = hosts[outline.host].name if outline.host in hosts else ""
        on = vm.power is Power.ON
        found[outline.moid] = Stranger(
            name=name, vm=outline.moid, host=host, vgpus=vm.vgpus, on=on, reserved_mib=vm.reserved_mib
        )
    return found


def _strays(nodes: Iterable[SeenNode], workers: Mapping[str, Worker]) -> Iterable[Worker]:
    """Yield nodes that have our fact labels but belong to no worker.

    Such a node was ours, whichever program wrote its other labels.
    """
    inside = {worker.node.name for worker in workers.values() if worker.node}
    for seen in nodes:
        name = seen.node.name
        if name not in inside and name not in workers and any(fact in seen.node.labels for fact in FACT_LABELS):
            yield Worker(name=name, vm="", host="", power=Power.OFF, node=seen.node)


def _completed(host: Host, names: Mapping[str, str], type_facts: tuple[TypeFacts, ...]) -> Host:
    """Return the host with cards that list VMs by name and have the known facts about vGPU types."""
    if not type_facts and not any(card.holds for card in host.cards):
        return host

    def completed(card: Card) -> Card:
        return replace(card, holds=tuple(names.get(moid, moid) for moid in card.holds), type_facts=type_facts)

    return replace(host, cards=tuple(map(completed, host.cards)), unshared=tuple(map(completed, host.unshared)))

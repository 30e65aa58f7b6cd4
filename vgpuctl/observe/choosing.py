"""Which VMs are workers: what the files say, compared with vCenter and with the labels of the nodes inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vgpuctl.basics.memo import Memo
from vgpuctl.kube.views import SeenNode
from vgpuctl.model.profiles import Candidate, Catalogue, WorkerRule
from vgpuctl.vsphere.views import Outline

Labels = Mapping[str, str]
_NO_LABELS: Labels = {}


class _LastNode(NamedTuple):
    """The node that was last seen inside a VM, and its labels as they were last seen."""

    node: str
    labels: Labels


class Chosen(NamedTuple):
    """The entries that choose a VM, one for each profile. `doubt`: why they may not be true any more."""

    rules: tuple[WorkerRule, ...] = ()
    doubt: str = ""


class Chooser:
    """Remembers which VMs a node label chose. Such a VM stays a worker if its node is deleted while it sleeps.

    Cloud providers delete nodes while VMs sleep. Then the node's last labels count. Folder, cluster and name always are
    the current ones.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._last: dict[str, _LastNode] = {}
        self.use(catalogue)

    def use(self, catalogue: Catalogue) -> None:
        """Choose by this catalogue from now on. The nodes' last labels still count: files do not change them."""
        self._catalogue = catalogue
        self._rules_memo: Memo[tuple[WorkerRule, ...]] = Memo()
        if not catalogue.asks_labels:
            # From here on, changes of labels are not learned.
            self._last = {}

    def learn(self, nodes: Iterable[SeenNode]) -> None:
        """Remember labels as they change, also between looks: a label may be taken off just before its node goes."""
        if not self._last or not self._catalogue.asks_labels:
            return
        # Decision 0017: people may take a label off and delete the node at once.
        labels = {seen.identity.name: seen.node.labels for seen in nodes}
        for vm, last in tuple(self._last.items()):
            if labels.get(last.node, last.labels) != last.labels:
                self._last[vm] = last._replace(labels=labels[last.node])

    def may_be_worker(self, vm: Outline, nodes: Iterable[SeenNode]) -> bool:
        """True if the VM could be a worker with any of these nodes inside."""
        return bool(self._rules_for_any(vm, nodes))

    def of(self, vm: Outline, nodes: tuple[SeenNode, ...]) -> Chosen:
        """Return the entries that choose this VM.

        `nodes`: the nodes that claim to be inside; if there are several, each may be the true one.
        """
        if not self._catalogue.asks_labels:
            return Chosen(self._rules_for(vm, _NO_LABELS))
        return self._chosen_with(vm, nodes[0]) if len(nodes) == 1 else Chosen(self._rules_for_any(vm, nodes))

    def _chosen_with(self, vm: Outline, seen: SeenNode) -> Chosen:
        """Return the choice with one node inside.

        Only the node whose label chose the VM, or another node with such a label, may end or change that choice.
        """
        name, labels, last = seen.identity.name, seen.node.labels, self._last.get(vm.moid)
        found = self._rules_for(vm, labels)
        # Decision 0017: a kubelet writes its ids and labels itself, so another node alone ends no choice.
        if last is not None and last.node != name and not found and (before := self._rules_for(vm, last.labels)):
            return Chosen(before, f"node {name} claims to be VM {vm.name}, but node {last.node} was in it before")
        if last is None or last.node != name or last.labels != labels:
            self._last[vm.moid] = _LastNode(name, labels)
        return Chosen(found)

    def _rules_for_any(self, vm: Outline, nodes: Iterable[SeenNode]) -> tuple[WorkerRule, ...]:
        """Return the entries that match the labels of any of these nodes, or of the node that was inside last."""
        last = self._last.get(vm.moid)
        # Decision 0017: if any node that claims the VM has the label, the VM is a worker in doubt, not a stranger.
        labels = [*(seen.node.labels for seen in nodes), last.labels if last else _NO_LABELS]
        found = {rule.profile: rule for each in labels for rule in self._rules_for(vm, each)}
        return tuple(found.values())

    def _rules_for(self, vm: Outline, labels: Labels) -> tuple[WorkerRule, ...]:
        """Return the entries for this VM and these labels.

        The catalogue is asked again only after one of the two has changed.
        """
        return self._rules_memo.of(vm.moid, (vm, labels), lambda: self._catalogue.chosen(_candidate(vm, labels)))


def _candidate(vm: Outline, labels: Labels) -> Candidate:
    return Candidate(vm.name, vm.folder, vm.cluster, labels)

"""What an unreadable object takes from the picture of a worker: enough to leave the worker alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from vgpuctl.model.hosts import Host
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.vsphere.views import Vm


class UnreadableParts:
    """Everything that could not be read at one look. `of_vcenter`: by the ids of VMs and hosts."""

    def __init__(
        self,
        of_vcenter: Mapping[str, Unreadable],
        of_kubernetes: Iterable[Unreadable],
        vms: Mapping[str, Vm],
        hosts: Mapping[str, Host],
    ) -> None:
        self._of_vcenter, self._of_kubernetes = of_vcenter, tuple(dict.fromkeys(of_kubernetes))
        self._nodes = [each.name for each in self._of_kubernetes if each.kind == "node"]
        self._pods: dict[str, list[str]] = {}
        for each in self._of_kubernetes:
            if each.kind == "pod" and each.node:
                self._pods.setdefault(each.node, []).append(each.name)
        self._vms: dict[str, list[str]] = {}
        for moid, vm in vms.items():
            # Decision 0018: an unreadable VM on a card counts as running, and fills that card.
            if vm.unreadable and (vm.vgpus or _holds(hosts.get(vm.outline.host), moid)):
                self._vms.setdefault(vm.outline.host, []).append(vm.outline.name)

    def doubts_about(self, vm: Vm, node: str) -> tuple[str, ...]:
        """Return why the worker in this VM cannot be judged. `node`: the node inside, if it is known."""
        return tuple(self._doubts_about(vm, node)) if self._of_vcenter or self._of_kubernetes or vm.unreadable else ()

    def _doubts_about(self, vm: Vm, node: str) -> Iterator[str]:
        # Decision 0018: the worst is assumed, so the worker is refused before the first cordon.
        if vm.unreadable:
            yield f"its VM cannot be read: {vm.unreadable}"
        host = self._of_vcenter.get(vm.outline.host)
        if host is not None:
            yield f"its host {host.name} cannot be read: {host.why}"
        for name in self._vms.get(vm.outline.host, ()):
            if name != vm.outline.name:
                yield f"{name}, a VM on a card of its host, cannot be read"
        if pods := self._pods.get(node):
            more = f" and {len(pods) - 1} more" if pods[1:] else ""
            yield f"its pod{'s' * len(pods[1:2])} {pods[0]}{more} cannot be read"
        if not node and vm.outline.name in self._nodes:
            yield f"its node {vm.outline.name} cannot be read"
        # The ids of an unreadable node are not known, so it may be inside any VM that seems to have none.
        elif not node:
            yield from (f"node {name}, which may be in this VM, cannot be read" for name in self._nodes)

    def without_workers(self, workers: Iterable[str]) -> tuple[Unreadable, ...]:
        """Return the unreadable objects without the VMs of workers, which report it themselves.

        `workers`: the ids of their VMs.
        """
        worker_ids = set(workers)
        return (*(each for moid, each in self._of_vcenter.items() if moid not in worker_ids), *self._of_kubernetes)


def _holds(host: Host | None, moid: str) -> bool:
    return host is not None and any(moid in card.holds for card in host.cards)

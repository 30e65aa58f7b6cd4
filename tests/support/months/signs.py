"""What a try failed on, read by us: whether it is otherwise now, which is what lets a host be tried again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vgpuctl.model.fleet import Fleet, Node

Changed = Callable[[Fleet, str, str], bool]


def is_changed(fleet: Fleet, sign: str, was: str) -> bool | None:
    """True if this sign reads otherwise now; None if it is a digest that only the product reads."""
    kind, _, name = sign.partition(" ")
    return _KINDS[kind](fleet, name, was) if kind in _KINDS else None


def _node(fleet: Fleet, name: str) -> Node | None:
    found = fleet.find(name.rpartition(" on ")[2])
    return found.node if found else None


def _pod(fleet: Fleet, name: str, was: str) -> bool:
    node = _node(fleet, name)
    return was not in {pod.uid for pod in (node.pods if node else ())}


def _budget(fleet: Fleet, name: str, was: str) -> bool:
    budget = next((each for each in fleet.budgets if f"{each.namespace}/{each.name}" == name), None)
    return budget is None or budget.allowed > int(was)


def _volume(fleet: Fleet, name: str, _was: str) -> bool:
    node, called = _node(fleet, name), name.rpartition(" on ")[0]
    return not any(called in (disk.claim, disk.volume) for disk in (node.disks if node else ()))


def _host(fleet: Fleet, name: str, was: str) -> bool:
    return was != "connected" and fleet.hosts[name].connected and not fleet.hosts[name].maintenance


def _worker(fleet: Fleet, name: str, was: str) -> bool:
    worker = fleet.find(name)
    return worker is None or " ".join((worker.power, *sorted(worker.vgpus))) != was


def _task(fleet: Fleet, name: str, _was: str) -> bool:
    worker = fleet.find(name)
    return worker is None or worker.busy_with is None


_KINDS: Mapping[str, Changed] = {
    "pod": _pod,
    "budget": _budget,
    "volume": _volume,
    "host": _host,
    "worker": _worker,
    "task": _task,
}

"""What maintenance of a host costs, and what still stands in its way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vgpuctl.model.fleet import Fleet, Power, Worker
from vgpuctl.model.pods import Pod
from vgpuctl.planning.pods.drain import lost_with_state


def pods_given_up(fleet: Fleet, hosts: Iterable[str]) -> tuple[Pod, ...]:
    """Return the pods that are lost if the suspended states on these hosts are discarded."""
    return tuple(pod for worker in _suspended(fleet, hosts) for pod in lost_with_state(worker.node))


def in_the_way(fleet: Fleet, hosts: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each worker that still runs or is still suspended on these hosts."""
    hosts = tuple(hosts)
    for worker in (worker for host in hosts for worker in fleet.on_host(host) if worker.on):
        yield f"{worker.name} still runs on {worker.host}: move or stop it before the patch."
    for worker in _suspended(fleet, hosts):
        yield f"{worker.name} is still suspended on {worker.host}: run the same command again."


def _suspended(fleet: Fleet, hosts: Iterable[str]) -> list[Worker]:
    return [worker for host in hosts for worker in fleet.on_host(host) if worker.power is Power.SUSPENDED]

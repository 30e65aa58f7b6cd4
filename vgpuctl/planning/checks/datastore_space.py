"""Whether the datastores have room for suspends: a suspend writes its VM's memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vgpuctl.model.conduct import Asleep
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.releases import changes_devices, stops
from vgpuctl.planning.checks.host_memory import in_gb


@dataclass(frozen=True, kw_only=True)
class DatastoreFull(Refusal):
    code = "VG304"
    title = "A datastore has no room for the memory of the VMs that would be suspended."
    way_out = "Make room there, or let workers sleep shut down (asleep: off)."

    wish: str
    workers: tuple[str, ...]
    datastore: str
    needed_mib: int
    free_mib: int

    @property
    def message(self) -> str:
        return (
            f"{self.wish} cannot begin on {self.host}: to suspend {' '.join(self.workers)} writes "
            f"{in_gb(self.needed_mib)}, and the datastore {self.datastore} has {in_gb(self.free_mib)} free for it."
        )


def against_space(fleet: Fleet, wish: Wish, hosts: Iterable[str]) -> Iterator[Refusal]:
    """Refuse suspends for which a datastore has no room. Hosts may share one; the first hosts are served first."""
    # vSphere: a suspend without room ends with NoDiskSpace. Space is reckoned before the first pod is touched.
    left = dict(fleet.datastores)
    for host in hosts:
        written: Counter[str] = Counter()
        # vSphere: the file lies beside the .vmx, or in `config.files.suspendDirectory`, which is not read here.
        writers = [worker for worker in fleet.on_host(host) if worker.name in wish.workers and suspends(wish, worker)]
        for worker in writers:
            # vSphere: the frame of a vGPU is not added to the memory file.
            written[worker.datastore] += worker.memory_mib
        short = next((name for name, mib in written.items() if name in left and mib > left[name]), None)
        if short is None:
            left = {name: mib - written[name] for name, mib in left.items()}
            continue
        yield DatastoreFull(
            host=host,
            wish=wish.name,
            workers=tuple(worker.name for worker in writers if worker.datastore == short),
            datastore=short,
            needed_mib=written[short],
            free_mib=left[short],
        )


def suspends(wish: Wish, worker: Worker) -> bool:
    """True if this worker will be put to sleep by a suspend. A VM that is off has nothing to write."""
    # A VM whose devices will change is shut down instead: vSphere changes them only while it is powered off.
    suspended = wish.conduct.asleep is Asleep.SUSPEND and not changes_devices(wish, worker)
    return suspended and stops(wish, worker)

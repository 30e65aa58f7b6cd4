"""Whether the datastores have room for suspends: a suspend writes its VM's memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from vgpuctl.model.conduct import Asleep
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.plan import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.releases import stops
from vgpuctl.planning.checks.host_memory import in_gb
from vgpuctl.planning.steps import equipped


def against_space(fleet: Fleet, wish: Wish, hosts: Iterable[str]) -> Iterator[Refusal]:
    """Refuse suspends for which a datastore has no room. Hosts may share one; the first hosts are served first."""
    left = dict(fleet.datastores)
    for host in hosts:
        written: Counter[str] = Counter()
        writers = [worker for worker in fleet.on_host(host) if worker.name in wish.workers and suspends(wish, worker)]
        for worker in writers:
            written[worker.datastore] += worker.memory_mib
        short = next((name for name, mib in written.items() if name in left and mib > left[name]), None)
        if short is None:
            left = {name: mib - written[name] for name, mib in left.items()}
            continue
        names = " ".join(worker.name for worker in writers if worker.datastore == short)
        yield Refusal(
            host,
            f"{wish.name} cannot begin on {host}: to suspend {names} writes {in_gb(written[short])}, and the datastore "
            f"{short} has {in_gb(left[short])} free for it.",
            hint="Make room there, or let workers sleep shut down (asleep: off).",
        )


def suspends(wish: Wish, worker: Worker) -> bool:
    """True if this worker will be put to sleep by a suspend. A VM that is off has nothing to write."""
    mine = wish.workers[worker.name]
    wrong = mine.change and mine.vgpus is not None and not equipped(worker, mine.vgpus)
    return stops(wish, worker) and not wrong and wish.conduct.asleep is Asleep.SUSPEND

"""Whether HA admission control lets the wish's workers start.

Only what is certainly too much is refused. What may be too much becomes a remark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from vgpuctl.model.admission import FailoverPolicy, Slots
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hosts import Host
from vgpuctl.model.plan import Remark
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.planning.cards.releases import stops
from vgpuctl.planning.checks.host_memory import in_gb
from vgpuctl.planning.checks.reservations import Cluster, HostBalance

#: The share of its memory that a host may keep for itself and for what VMs take beyond their reservations: enough to
#: doubt.
KEPT = 0.05


@dataclass(frozen=True, kw_only=True)
class FailoverHost(Refusal):
    code = "VG305"
    title = "HA keeps the host free as a failover host, so no worker starts there."
    way_out = (
        "Move the worker to another host, or take its host off the failover hosts (in the vSphere client: Configure > "
        "vSphere Availability)."
    )

    wish: str
    workers: tuple[str, ...]
    cluster: str

    @property
    def what(self) -> str:
        names = " ".join(self.workers)
        return f"HA keeps {self.host} free as a failover host of {self.cluster}, and {names} will not start there"

    @property
    def message(self) -> str:
        return f"{self.wish} cannot begin on {self.host}: {self.what}."

    @property
    def hint(self) -> str:
        return (
            f"Move it to another host, or take {self.host} off the failover hosts (in the vSphere client: Configure > "
            "vSphere Availability)."
        )


@dataclass(frozen=True, kw_only=True)
class AdmissionLimit(Refusal):
    """`keeps`: what HA keeps free, in words. Amounts are MiB: of the cluster, `limit` may be and `after` would be
    reserved; the workers take `takes` of that."""

    code = "VG306"
    title = "HA admission control of the cluster forbids the start: too much memory would be reserved."
    way_out = (
        "Give it less memory, take a worker off the shift, bring another host into the cluster, or change its "
        "admission control (in the vSphere client: Configure > vSphere Availability)."
    )

    wish: str
    workers: tuple[str, ...]
    cluster: str
    keeps: str
    memory_mib: int
    limit_mib: int
    after_mib: int
    takes_mib: int

    @property
    def message(self) -> str:
        return (
            f"{self.wish} cannot begin on {self.host}: HA admission control of {self.cluster} forbids to start "
            f"{' '.join(self.workers)}. It keeps {self.keeps} free: of {in_gb(self.memory_mib)}, "
            f"{in_gb(self.limit_mib)} may be reserved, and {in_gb(self.after_mib)} would be."
        )

    @property
    def details(self) -> tuple[str, ...]:
        names, need = " ".join(self.workers), "need" if self.workers[1:] else "needs"
        return (
            f"{names} {need} {in_gb(self.takes_mib)}; once the workers that go to sleep have given theirs back, the "
            f"other VMs in {self.cluster} keep {in_gb(self.after_mib - self.takes_mib)}",
        )


def against_admission(fleet: Fleet, wish: Wish, hosts: Sequence[str]) -> Iterator[Refusal]:
    """Yield refusals where HA admission control would certainly forbid a start.

    `hosts`: the hosts that nothing else speaks against. Several may share a cluster; hosts that come first are served
    first.
    """
    # vSphere: HA admission control refuses such a start with InsufficientFailoverResourcesFault.
    for cluster in _clusters(fleet, hosts):
        balances = [cluster.balance(wish, host) for host in _in_order(cluster, hosts)]
        if isinstance(cluster.admission.policy, FailoverPolicy):
            yield from _against_failover_hosts(cluster, cluster.admission.policy, wish, balances)
        elif (limit := cluster.limit()) is not None:
            yield from _against_limit(cluster, wish, balances, limit)


def full_for_now(fleet: Fleet, wish: Wish, worker: Worker) -> bool:
    """True if this start would be refused at this moment, but no longer once other workers of the plan have left."""
    host = fleet.hosts.get(worker.host)
    if host is None or host.admission is None or isinstance(host.admission.policy, FailoverPolicy):
        return False
    # vSphere: InsufficientFailoverResourcesFault would refuse the start until the others have left, so it waits.
    cluster = Cluster.of(fleet, host.admission)
    limit = cluster.limit()
    if limit is None or cluster.reserved() + cluster.needs(wish, worker) <= limit:
        return False
    leaving = (w for each in cluster.hosts for w in fleet.on_host(each.name) if w.name in wish.workers)
    return any(stops(wish, other) for other in leaving if other.name != worker.name)


def admission_in_doubt(fleet: Fleet, wish: Wish) -> Iterator[Remark]:
    """Yield what may be too much for HA admission control, for a wish that is not refused."""
    ours = dict.fromkeys(fleet.host_of(name) for name in wish.workers)
    for cluster in _clusters(fleet, list(ours), certain=False):
        balances = [cluster.balance(wish, host) for host in _in_order(cluster, ours)]
        balances = [balance for balance in balances if balance.starts]
        if not balances:
            continue
        if isinstance(cluster.admission.policy, FailoverPolicy):
            for balance in balances:
                if balance.host in cluster.admission.policy.hosts:
                    yield Remark(balance.host, f"{_failover(cluster, wish, balance).what}, but where DRS places it")
            continue
        if why := _why_close(cluster, wish):
            names = " ".join(name for balance in balances for name in balance.starts)
            where = balances[0].host if len(balances) == 1 else ""
            yield Remark(where, f"HA admission control of {cluster.name} may forbid to start {names}: {why}")


def _clusters(fleet: Fleet, hosts: Iterable[str], *, certain: bool = True) -> list[Cluster]:
    """Return the clusters of these hosts."""
    known = (fleet.hosts[name].admission for name in hosts if name in fleet.hosts)
    found = {admission.cluster: admission for admission in known if admission is not None}
    return [Cluster.of(fleet, admission, certain=certain) for admission in found.values()]


def _in_order(cluster: Cluster, hosts: Iterable[str]) -> Iterator[Host]:
    mine = {host.name: host for host in cluster.hosts}
    return (mine[name] for name in hosts if name in mine)


def _against_failover_hosts(
    cluster: Cluster, spares: FailoverPolicy, wish: Wish, balances: Iterable[HostBalance]
) -> Iterator[Refusal]:
    """Refuse starts on failover hosts.

    If DRS places VMs, it may find another host, so the refusal would not be certain.
    """
    for balance in balances:
        # vSphere: under DRS a power-on may place the VM on another host (PowerOnVM_Task).
        if balance.starts and balance.host in spares.hosts and not cluster.admission.drs_moves:
            yield _failover(cluster, wish, balance)


def _failover(cluster: Cluster, wish: Wish, balance: HostBalance) -> FailoverHost:
    return FailoverHost(host=balance.host, wish=wish.name, workers=balance.starts, cluster=cluster.name)


def _against_limit(cluster: Cluster, wish: Wish, balances: list[HostBalance], limit: int) -> Iterator[Refusal]:
    """Refuse starts beyond the limit.

    Some hosts give back at least as much memory as they take. They only help, so they are counted first.
    If too much is reserved even then, every start is refused.
    """
    # All hosts of a cluster share one limit, so the order in which they are served matters (architecture.md).
    reserved = cluster.reserved() + sum(balance.more for balance in balances if balance.more <= 0)
    for balance in balances if reserved > limit else ():
        if balance.starts:
            yield _too_much(cluster, wish, balance, limit, reserved + max(0, balance.more))
    for balance in balances if reserved <= limit else ():
        if balance.more > 0 and reserved + balance.more > limit:
            yield _too_much(cluster, wish, balance, limit, reserved + balance.more)
        elif balance.more > 0:
            reserved += balance.more


def _too_much(cluster: Cluster, wish: Wish, balance: HostBalance, limit: int, after: int) -> Refusal:
    return AdmissionLimit(
        host=balance.host,
        wish=wish.name,
        workers=balance.starts,
        cluster=cluster.name,
        keeps=cluster.keeps(),
        memory_mib=cluster.memory_mib,
        limit_mib=limit,
        after_mib=after,
        takes_mib=balance.takes,
    )


def _why_close(cluster: Cluster, wish: Wish) -> str:
    """Return why the room may be too little, if all VMs count and hosts keep some memory for themselves; else ""."""
    balances = [cluster.balance(wish, host) for host in cluster.hosts]
    after = cluster.reserved() + sum(balance.more for balance in balances)
    limit = cluster.limit()
    if limit is None:
        return ""
    if after > limit * (1 - KEPT):
        return (
            f"it keeps {cluster.keeps()} free; of {in_gb(cluster.memory_mib)}, at most {in_gb(limit)} may be reserved, "
            f"less what the hosts keep for themselves, and {in_gb(after)} would be"
        )
    return _few_slots(cluster, cluster.admission.policy, wish) if isinstance(cluster.admission.policy, Slots) else ""


def _few_slots(cluster: Cluster, policy: Slots, wish: Wish) -> str:
    """Return why the slots may be too few.

    vCenter decides how large a slot is; by its usual rule it is as large as the largest reservation.
    """
    running = [mib for host in cluster.hosts for mib in cluster.running(wish, host)]
    slot = policy.slot_mib or max(running, default=0)
    if not slot:
        return ""
    slots = sorted(int(host.memory_mib * (1 - KEPT)) // slot for host in cluster.hosts)
    kept = sum(slots[: max(0, len(slots) - policy.level)])
    used = sum(max(1, ceil(mib / slot)) for mib in running)
    if used <= kept:
        return ""
    return f"it keeps {cluster.keeps()} free, which leaves about {kept} slots of {in_gb(slot)}; {used} would be used"

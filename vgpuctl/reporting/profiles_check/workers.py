"""What stands in the way of single workers, whatever room there is."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.fleet import Worker
from vgpuctl.model.plan import Step
from vgpuctl.planning.cards.mmio import mmio_needed
from vgpuctl.planning.checks.devices import ADDRESS_SPACE, PROVISION, MemoryNotReserved
from vgpuctl.planning.checks.workers import Case, obstacles
from vgpuctl.planning.steps import Attach, PowerOn, Suspend, equipped
from vgpuctl.planning.steps.devices import has_address_space
from vgpuctl.reporting.profiles_check.finding import Compared, Finding, Severity, place


def of_workers(compared: Compared) -> Iterator[Finding]:
    for worker in compared.fleet.workers.values():
        yield from _obstacles(compared, worker)
        if compared.wanted(worker):
            yield from _settings(compared, worker)
            yield from _drs(compared, worker)


def _obstacles(compared: Compared, worker: Worker) -> Iterator[Finding]:
    """Yield what the planner would refuse.

    It is a warning if no command would do what the obstacle speaks against: no shift wants the worker asleep, or its VM
    carries its vGPUs already.
    """
    wanted = compared.wanted(worker)
    ahead: set[type[Step]] = {PowerOn}
    ahead |= {Suspend} if compared.put_to_sleep(worker) else set()
    ahead |= set() if equipped(worker, wanted) else {Attach}
    for each in obstacles(Case(worker, compared.fleet.hosts.get(worker.host), wanted)):
        refused = not each.against or not ahead.isdisjoint(each.against)
        if each.passing or not (refused or wanted):
            continue
        # The plan would not suspend this worker, so the obstacle does no harm now.
        idle = "" if refused or each.against != (Suspend,) else " (no shift wants it asleep)"
        severity = Severity.ERROR if refused else Severity.WARNING
        yield _found(severity, worker, kind=each.kind, what=f"{each.what}{idle}", hint=each.hint)


def _settings(compared: Compared, worker: Worker) -> Iterator[Finding]:
    """Yield wrong VM settings. A VM that has yet to get its vGPUs gets these settings with them."""
    wanted = compared.wanted(worker)
    carries = sorted(worker.vgpus) == sorted(wanted)
    # vSphere: a VM with a vGPU has all its memory reserved (`memoryReservationLockedToMax`).
    if carries and not worker.memory_locked:
        what, hint = MemoryNotReserved.what, MemoryNotReserved.way_out
        yield _found(Severity.ERROR, worker, kind="memory-not-reserved", what=what, hint=hint)
    needed = mmio_needed(wanted)
    if carries and not has_address_space(worker, wanted):
        yield _found(
            Severity.WARNING,
            worker,
            kind="address-space",
            what=ADDRESS_SPACE.format(needed),
            hint=PROVISION,
        )


def _drs(compared: Compared, worker: Worker) -> Iterator[Finding]:
    host = compared.fleet.hosts.get(worker.host)
    if host is None or not compared.drs.may_place(worker.vm, host.cluster):
        return
    # vSphere: under DRS a power-on, a resume included, may place the VM on another host.
    if sum(other.cluster == host.cluster for other in compared.fleet.hosts.values()) > 1:
        yield _found(
            Severity.WARNING,
            worker,
            kind="drs",
            what=f"may be started on another host by DRS of the cluster {host.cluster}",
            hint="Override DRS for these VMs (disabled or manual), or bind them to their host by a must-rule.",
        )


def _found(severity: Severity, worker: Worker, *, kind: str, what: str, hint: str) -> Finding:
    return Finding(severity=severity, kind=kind, what=what, hint=hint, where=place(worker), workers=(worker.name,))

"""Obstacles for single workers, whatever room there is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from vgpuctl.model.fleet import Worker
from vgpuctl.planning.cards.mmio import mmio_needed
from vgpuctl.planning.steps import equipped
from vgpuctl.planning.steps.devices import addressable
from vgpuctl.reporting.profiles_check.finding import Compared, Finding, Severity, place

PROVISION = "Run: vgpuctl provision"


def of_workers(compared: Compared) -> Iterator[Finding]:
    for worker in compared.fleet.workers.values():
        yield from _identity(worker)
        yield from _not_ours(worker)
        if compared.wanted(worker):
            yield from _suspending(compared, worker)
            yield from _settings(compared, worker)
            yield from _drs(compared, worker)


def _identity(worker: Worker) -> Iterator[Finding]:
    for doubt in worker.doubts:
        yield _error(worker)(
            kind="in-doubt",
            what=f"cannot be told for sure: {doubt}",
            hint="Correct it here, in the node's spec.providerID or the VM's name; or delete what is stale.",
        )


def _not_ours(worker: Worker) -> Iterator[Finding]:
    if worker.managed_by:
        yield _error(worker)(
            kind="managed",
            what=f"managed by {worker.managed_by}, which decides about devices and power",
            hint="Change it there, or take it out of profiles.yaml.",
        )
    if worker.question:
        yield _error(worker)(
            kind="question",
            what=f"waits for an answer in vCenter: {worker.question}",
            hint="Answer it in the vSphere client, or with govc vm.question.",
        )


def _suspending(compared: Compared, worker: Worker) -> Iterator[Finding]:
    """Yield obstacles to suspending. They matter only if some shift wants the worker asleep."""
    severity, until = Severity.ERROR, ""
    if not compared.put_to_sleep(worker):
        severity, until = Severity.WARNING, " (no shift wants it asleep)"
    for device in worker.fixed_devices:
        yield partial(_found, severity, worker)(
            kind="not-suspendable",
            what=f"cannot be suspended because of {device}{until}",
            hint="Take the device off the VM, or take the worker out of the timetable.",
        )
    host = compared.fleet.hosts.get(worker.host)
    for vgpu in sorted(set(compared.wanted(worker)) & (host.not_suspendable if host else frozenset())):
        yield partial(_found, severity, worker)(
            kind="not-suspendable",
            what=f"cannot be suspended: {worker.host} suspends no {vgpu}{until}",
            hint="Give it another profile, update the host's vGPU manager, or take it out of the timetable.",
        )


def _settings(compared: Compared, worker: Worker) -> Iterator[Finding]:
    """Yield wrong VM settings.

    A VM that has yet to get its vGPUs gets the other settings with them, except its firmware.
    """
    wanted = compared.wanted(worker)
    carries = sorted(worker.vgpus) == sorted(wanted)
    if carries and not worker.memory_locked:
        yield _error(worker)(
            kind="memory-not-reserved", what="memory is not fully reserved, as a vGPU needs", hint=PROVISION
        )
    needed = mmio_needed(wanted)
    if worker.mmio is None or not needed:
        return
    if not worker.mmio.efi:
        severity = Severity.WARNING if equipped(worker, wanted) else Severity.ERROR
        yield _found(
            severity,
            worker,
            kind="no-efi",
            what=f"boots by BIOS; the card of {wanted[0]} needs EFI",
            hint="Build the VM anew with EFI firmware: changing that of an installed guest breaks it.",
        )
    if carries and not addressable(worker.mmio, wanted):
        yield _found(
            Severity.WARNING,
            worker,
            kind="address-space",
            what=f"has no {needed} GB of 64-bit address space for the BAR of its card (pciPassthru.64bitMMIOSizeGB)",
            hint=PROVISION,
        )


def _drs(compared: Compared, worker: Worker) -> Iterator[Finding]:
    host = compared.fleet.hosts.get(worker.host)
    if host is None or not compared.drs.may_place(worker.vm, host.cluster):
        return
    if sum(other.cluster == host.cluster for other in compared.fleet.hosts.values()) > 1:
        yield _found(
            Severity.WARNING,
            worker,
            kind="drs",
            what=f"may be started on another host by DRS of the cluster {host.cluster}",
            hint="Override DRS for these VMs (disabled or manual), or bind them to their host by a must-rule.",
        )


def _error(worker: Worker) -> partial[Finding]:
    return partial(_found, Severity.ERROR, worker)


def _found(severity: Severity, worker: Worker, *, kind: str, what: str, hint: str) -> Finding:
    return Finding(severity=severity, kind=kind, what=what, hint=hint, where=place(worker), workers=(worker.name,))

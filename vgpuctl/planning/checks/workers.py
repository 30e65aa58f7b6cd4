"""Reasons against touching a worker at all, whatever room there is; each comes with the way out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vgpuctl.model.fleet import Worker
from vgpuctl.model.hosts import Host
from vgpuctl.model.plan import Refusal, Step
from vgpuctl.planning.cards.mmio import mmio_needed
from vgpuctl.planning.steps import Attach, PowerOn, ShutDown, Suspend


def unfit(worker: Worker, host: Host | None, rungs: Sequence[Step]) -> Iterator[Refusal]:
    """Yield the reasons against these `rungs`, the steps planned for this worker. No steps, no reasons."""
    if not rungs:
        return
    for doubt in worker.doubts:
        yield Refusal(
            worker.host,
            f"{worker.name} cannot be told for sure: {doubt}.",
            hint="Correct it in profiles.yaml, the node's spec.providerID, or the VM's name; or delete what is stale.",
        )
    touched = [step for step in rungs if isinstance(step, Suspend | ShutDown | Attach | PowerOn)]
    if touched:
        yield from _not_ours_to_touch(worker)
        yield from _busy(worker, touched)
        yield from _unable(worker, host, touched)


def _not_ours_to_touch(worker: Worker) -> Iterator[Refusal]:
    if worker.managed_by:
        yield Refusal(
            worker.host,
            f"{worker.name} is managed by {worker.managed_by}: that decides about its devices and power.",
            hint="Change it there, or take it out of profiles.yaml.",
        )
    if worker.question:
        yield Refusal(
            worker.host,
            f"{worker.name} waits for an answer in vCenter: {worker.question}",
            hint="Answer it in the vSphere client (or with govc vm.question), then run this again.",
        )


#: The kinds of vCenter tasks that each step becomes.
_TASKS: dict[type, set[str]] = {
    Suspend: {"suspend"},
    ShutDown: {"powerOff", "shutdownGuest"},
    Attach: {"reconfigure"},
    PowerOn: {"powerOn"},
}


def _busy(worker: Worker, steps: Sequence[Step]) -> Iterator[Refusal]:
    """Refuse a worker that others are at work on. We wait for what we began ourselves, in an earlier run too."""
    task = worker.busy_with
    begun = worker.node is not None and worker.node.record is not None
    if task is None or begun or any(task.kind in _TASKS.get(type(step), ()) for step in steps):
        return
    yield Refusal(
        worker.host,
        f"vCenter is at work on {worker.name} ({task.kind or 'a task'}), and not for us.",
        hint="Wait until that has ended, then run this again.",
    )


def _unable(worker: Worker, host: Host | None, steps: Sequence[Step]) -> Iterator[Refusal]:
    for step in steps:
        match step:
            case Suspend():
                yield from _not_suspendable(worker, host)
            case PowerOn() if host is not None and (host.maintenance or not host.connected):
                why = "is in maintenance mode" if host.maintenance else "is not connected to vCenter"
                yield Refusal(
                    host.name, f"{worker.name} cannot start: {host.name} {why}.", hint=f"Bring {host.name} back first."
                )
            case Attach(vgpus=vgpus) if worker.mmio is not None and not worker.mmio.efi and mmio_needed(vgpus):
                yield Refusal(
                    worker.host,
                    f"{worker.name} boots by BIOS; the cards of {' '.join(vgpus)} need EFI.",
                    hint="Build the VM anew with EFI firmware: changing the firmware of an installed guest breaks it.",
                )


def _not_suspendable(worker: Worker, host: Host | None) -> Iterator[Refusal]:
    forbidden = [vgpu for vgpu in worker.vgpus if host is not None and vgpu in host.not_suspendable]
    for why in [*worker.fixed_devices, *(f"{vgpu}, which its host cannot suspend" for vgpu in forbidden)]:
        yield Refusal(
            worker.host,
            f"{worker.name} cannot be suspended: it has {why}.",
            hint="Take the device off the VM, or take the worker out of the timetable.",
        )

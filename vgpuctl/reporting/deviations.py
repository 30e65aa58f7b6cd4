"""Where a worker or host is not as the files and timetables want it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vgpuctl.basics.bounded import cut
from vgpuctl.basics.phrases import first_names
from vgpuctl.model.departure import Departure
from vgpuctl.model.fleet import Fleet, Node, Power, Worker
from vgpuctl.model.hold import Hold
from vgpuctl.model.hosts import Host
from vgpuctl.model.pods import Rollout
from vgpuctl.model.profiles import Catalogue, Profile
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.model.workloads import SIZE_ANNOTATION, Workload
from vgpuctl.planning.cards.mmio import mmio_needed
from vgpuctl.planning.checks.devices import ADDRESS_SPACE, MemoryNotReserved
from vgpuctl.planning.checks.workers import KINDS, Case
from vgpuctl.planning.labels import Labels, labels_of
from vgpuctl.planning.steps import equipped, missing_signs
from vgpuctl.planning.wishes import PROVISION
from vgpuctl.reporting.timetable_state import TimetableState

_RELABEL = "vgpuctl label-nodes"
_OUT_OF_STEP = [kind for kind in KINDS if kind.out_of_step]
POWER_WORDS = {Power.ON: "on", Power.OFF: "off", Power.SUSPENDED: "suspended"}


class Deviation(NamedTuple):
    """One way in which a worker, host or workload is not as wanted.

    `what`: reads well as "NAME: WHAT", and is the same text for every object it is true of. `since`: as servers write
    times.
    """

    kind: str
    name: str
    what: str
    remedy: str = ""
    since: str = ""


def of_missing(names: Iterable[str]) -> Iterator[Deviation]:
    for name in names:
        yield Deviation("worker", name, "in profiles.yaml, but no VM of vCenter has this name")


def of_unreadable(found: Iterable[Unreadable]) -> Iterator[Deviation]:
    for each in found:
        what = f"this {each.kind} cannot be read and is left out: {cut(each.why)}"
        yield Deviation(each.kind, cut(each.name), what)


def of_host(host: Host) -> Iterator[Deviation]:
    if not host.connected:
        yield Deviation("host", host.name, "not connected to vCenter; what is shown of it may be old")
    # vSphere: on a host in maintenance mode, a suspended VM cannot be resumed.
    if host.maintenance:
        yield Deviation("host", host.name, "in maintenance mode; no VM can be started on it")


def of_worker(
    fleet: Fleet, worker: Worker, catalogue: Catalogue, states: tuple[TimetableState, ...]
) -> Iterator[Deviation]:
    """Yield what is wrong with this worker.

    `states`: the states of the timetables that keep it. There is one, unless they contradict each other.
    """
    for kind in _OUT_OF_STEP:
        for obstacle in kind.found(Case(worker, fleet.hosts.get(worker.host), worker.vgpus)):
            yield _of(worker, obstacle.what)
    if len(states) > 1:
        names = " and ".join(each.timetable.name for each in states)
        yield _of(worker, f"in several timetables: {names}")
    yield from _of_hold(worker, worker.hold) if worker.hold else _unless_held(worker, catalogue, states)
    if worker.node is not None:
        yield from _of_labels(worker, worker.node.labels, labels_of(fleet, catalogue, worker, worker.vgpus), catalogue)


def _unless_held(worker: Worker, catalogue: Catalogue, states: tuple[TimetableState, ...]) -> Iterator[Deviation]:
    """Yield what a hold keeps as it is on purpose: devices, power and cordon."""
    yield from _of_devices(worker, catalogue, states)
    if len(states) == 1:
        yield from _of_power(worker, states[0])
    if worker.node is None:
        return
    if worker.node.record is not None and worker.node.record.wish == PROVISION:
        yield _of(worker, "on its way through provision", "vgpuctl provision", worker.node.record.since)
    elif worker.on and worker.node.unschedulable:
        yield _of(worker, f"cordoned {cordoned_by(worker.node)}", since=cordoned_since(worker.node))


def _of_hold(worker: Worker, hold: Hold) -> Iterator[Deviation]:
    """Yield a hold whose end cannot be read: it holds until a person ends it."""
    if hold.unreadable:
        what = f"held without an end, because it cannot be read: {hold.unreadable}"
        yield _of(worker, what, f"vgpuctl hold {worker.name} --until TIME, or vgpuctl unhold {worker.name}", hold.since)


def _of(worker: Worker, what: str, remedy: str = "", since: str = "") -> Deviation:
    return Deviation("worker", worker.name, what, remedy, since)


def _of_devices(worker: Worker, catalogue: Catalogue, states: tuple[TimetableState, ...]) -> Iterator[Deviation]:
    """Yield wrong devices.

    If a worker's profile changes with the shift, only what it carries while awake can be wrong.
    """
    exchanged = len(states) == 1 and bool(states[0].timetable.profiles_of(worker.name))
    given = states[0].wanted(worker) if exchanged else catalogue.profile(worker.profile)
    if given is None or equipped(worker, given.vgpus):
        return
    shift = states[0].current or states[0].due if exchanged else ""
    yield _of(worker, _carried(worker, catalogue, given), f"vgpuctl switch {shift}" if shift else "vgpuctl provision")


def _carried(worker: Worker, catalogue: Catalogue, given: Profile) -> str:
    if sorted(worker.vgpus) == sorted(given.vgpus):
        return ADDRESS_SPACE.format(mmio_needed(given.vgpus)) if worker.memory_locked else MemoryNotReserved.what
    carried = catalogue.carried(worker.vgpus) or " ".join(worker.vgpus) or "no vGPU"
    return f"carries {carried}, should carry {given.name}"


def of_rollout(rollout: Rollout, fleet: Fleet) -> Iterator[Deviation]:
    """Yield a rollout that sleepers hold up.

    A sleeper's pod counts as missing. Once as many pods are missing as may be, the awake nodes are not updated either.
    """
    # Measured: with maxUnavailable 1 and one sleeping node, no awake node was updated (kubernetes#117658).
    owner = f"DaemonSet/{rollout.name}"
    sleepers = [
        worker.name
        for worker in fleet.workers.values()
        if not worker.on
        and worker.node is not None
        and any(pod.owner == owner and pod.namespace == rollout.namespace for pod in worker.node.pods)
    ]
    if len(sleepers) >= rollout.most_out:
        names = first_names(sleepers)
        what = f"its rollout stands at {rollout.updated} of {rollout.wanted} nodes, because {names} sleep"
        verb = what.removesuffix("sleep") + "sleeps" if len(sleepers) == 1 else what
        yield Deviation("daemonset", str(rollout), verb)


def of_departure(left: Departure) -> Deviation:
    """Return the deviation of a host whose switch was cut short or is under way."""
    way = f"from {left.origin} to {left.to}" if left.origin else f"to {left.to}"
    # Decision 0012: the departure says from where the host goes, to any machine that asks.
    back = f", or back: vgpuctl switch {left.origin}" if left.origin and left.origin != left.to else ""
    return Deviation("host", left.host, f"on its way {way}", f"vgpuctl switch {left.to}{back}", left.since)


def of_workload(workload: Workload, state: TimetableState) -> Iterator[Deviation]:
    """Yield a workload that is still at zero although its shift does not want that any more."""
    shift = state.current or state.due
    if workload.scaled is not None and shift and not state.timetable.shifts[shift].scales(workload):
        what = f"scaled to zero for {workload.scaled.shift}, and not back"
        yield Deviation("workload", workload.key, what, f"vgpuctl switch {shift}", workload.scaled.since)


def of_mark(workload: Workload) -> Iterator[Deviation]:
    """Yield a mark that cannot be read: the size to give back to the workload is not known."""
    if workload.scaled is not None and workload.scaled.unreadable:
        what = f"bears a mark that cannot be read: {workload.scaled.unreadable}"
        taking_off = f"kubectl annotate -n {workload.namespace} {workload.kind}/{workload.name} {SIZE_ANNOTATION}-"
        yield Deviation("workload", workload.key, what, f"scale it yourself, then {taking_off}")


def _of_power(worker: Worker, state: TimetableState) -> Iterator[Deviation]:
    """Yield a wrong power state, unless vCenter is at work on the worker: then its power is about to change."""
    if worker.busy_with is not None:
        return
    shift = state.current or state.due
    awake = state.should_be_awake(worker)
    if worker.on and not awake:
        yield _of(worker, "on, but should be asleep", f"vgpuctl switch {shift}" if shift else "")
    if awake and not worker.on:
        yield _of(worker, f"{POWER_WORDS[worker.power]}, but should be awake", f"vgpuctl switch {shift}")
    elif awake and (missing := missing_signs(worker)):
        yield _of(worker, f"not back: {missing}")


def _of_labels(worker: Worker, have: Labels, true: Labels, catalogue: Catalogue) -> Iterator[Deviation]:
    """Yield wrong labels. The profile's label must be there; labels of facts may be missing, but not wrong."""
    label, carried = have.get(catalogue.label), true[catalogue.label]
    if label != carried:
        what = f"is labelled {label}" if label else f"has no label {catalogue.label}"
        yield _of(worker, f"{what}, but carries {carried or 'no profile'}", _RELABEL)
    wrong = [key for key, value in true.items() if key != catalogue.label and key in have and have[key] != value]
    if wrong:
        yield _of(worker, f"labels that are not true: {', '.join(sorted(wrong))}", _RELABEL)


def cordoned_by(node: Node) -> str:
    """Return the origin of the cordon: `by kubectl, not us`.

    A cordon that we recorded is ours, whichever program wrote the node since.
    """
    if node.record is not None and node.record.cordoned:
        return f"by vgpuctl for {node.record.wish}"
    # Kubernetes: `managedFields` names the program that cordoned, such as kubectl, and never the person.
    return f"by {node.cordoned_by}, not us" if node.cordoned_by else "not by vgpuctl"


def cordoned_since(node: Node) -> str:
    ours = node.record is not None and node.record.cordoned
    return node.record.since if ours and node.record else node.cordoned_since

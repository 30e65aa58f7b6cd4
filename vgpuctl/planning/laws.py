"""The laws: what the engine checks just before each write, and the tests in every world."""

from __future__ import annotations

from vgpuctl.model.fleet import Fleet
from vgpuctl.model.requests import (
    AttachVgpus,
    Evict,
    Patch,
    PatchMachine,
    PatchNode,
    PowerOffVm,
    PowerOnVm,
    Request,
    ScaleWorkload,
    ShutDownGuest,
    SuspendVm,
)
from vgpuctl.planning.cards.placement import fits, needs_of
from vgpuctl.planning.cards.seating import occupants, possible_seatings
from vgpuctl.planning.pods.drain import budgets_to_pay

#: The laws that a single write can break, as people read them.
LAWS = {
    1: "no VM is stopped while its node runs a pod that should have moved",
    2: "no VM starts where no card can hold it, and no running VM gets other devices",
    3: "no cordon, label, mark or size is changed that is not ours",
    4: "no pod is evicted against its disruption budget",
}


def broken_by(request: Request, fleet: Fleet) -> str:
    """Return what this write would break in this world, with the law's sentence; "" if it breaks none."""
    match request:
        case SuspendVm() | ShutDownGuest() | PowerOffVm():
            return _law_1(fleet, request)
        case PowerOnVm():
            return _law_2(fleet, request.worker)
        case PatchNode() | PatchMachine() | ScaleWorkload():
            return _law_3(fleet, request)
        case Evict():
            return _law_4(fleet, request)
        # vSphere: devices are changed only while the VM is powered off.
        case AttachVgpus():
            return "" if not fleet.worker(request.worker).on else _breach(2, f"{request.worker} runs")
    return ""


def _breach(law: int, what: str) -> str:
    return f"{what} (law {law}: {LAWS[law]})"


def _law_1(fleet: Fleet, request: SuspendVm | ShutDownGuest | PowerOffVm) -> str:
    """A worker stops only while its node runs no pod except the ones that the drain left and the last look expects."""
    worker = fleet.worker(request.worker)
    node = worker.node
    if node is None and worker.on:
        return _breach(1, f"{request.worker} runs, and its pods cannot be seen")
    # Pods that appear late count: only pods that the drain left, known by their UIDs, may still be there.
    expected = request.first.expected if request.first else frozenset()
    late = [pod for pod in node.pods if pod.uid not in expected] if node else []
    return _breach(1, f"{request.worker} still runs {late[0]}") if late else ""


def _law_2(fleet: Fleet, name: str) -> str:
    """A VM starts only if it has room in some seating of the others. Only a certain lack of room breaks this law."""
    worker = fleet.worker(name)
    host = fleet.hosts.get(worker.host)
    if host is None or not worker.vgpus:
        return ""
    # vSphere: `graphicsInfo` may lag. What is only doubtful is left to vCenter, which refuses a start without room.
    ways = possible_seatings(host, occupants(fleet, host), [worker.vgpus]).ways
    if any(fits(loads, needs_of([worker.vgpus])) for loads in ways):
        return ""
    return _breach(2, f"no card of {worker.host} can hold {' '.join(worker.vgpus)} for {name}")


def _law_3(fleet: Fleet, patch: Patch) -> str:
    if isinstance(patch, ScaleWorkload):
        return _law_3_of_workloads(fleet, patch)
    if isinstance(patch, PatchMachine):
        return _law_3_of_machines(fleet, patch)
    worker = fleet.with_this_node(patch.node)
    if worker is None or worker.node is None:
        # `label-nodes --prune` touches nodes that are no workers any more, and only takes our labels off.
        pruned = patch.node in fleet.strays and not patch.annotations and patch.unschedulable is None
        only_off = pruned and not any(patch.labels.values())
        return "" if only_off else _breach(3, f"{patch.node} is no worker of ours")
    if patch.unschedulable is False and not (worker.node.record and worker.node.record.cordoned):
        return _breach(3, f"the cordon of {patch.node} is not ours")
    return ""


def _law_3_of_workloads(fleet: Fleet, request: ScaleWorkload) -> str:
    """A workload is scaled to zero only if it bears no mark of ours, and scaled back only if it bears one."""
    now = fleet.workloads.get(request.workload.key)
    if now is None or (request.scaled is None) is (now.scaled is None):
        return _breach(3, f"the size of {request.workload.key} is not ours to change")
    return ""


def _law_3_of_machines(fleet: Fleet, patch: PatchMachine) -> str:
    """A write never takes off a mark that another program set, and never claims it."""
    machine = fleet.worker(patch.worker).machine
    if machine is None or machine.path != patch.machine.path:
        return _breach(3, f"the Machine {patch.machine.called} belongs to no worker of ours")
    # Decision 0014: a mark that another program set serves as well, and stays.
    if not machine.ours and (machine.shielded or not patch.shield):
        return _breach(3, f"the mark on the Machine {machine.called} is not ours")
    return ""


def _law_4(fleet: Fleet, request: Evict) -> str:
    pod = request.pod
    # Kubernetes: the API server would refuse it too (429), but a budget that we can see is not tried.
    blocking = [budget for budget in budgets_to_pay(fleet, pod) if budget.allowed <= 0]
    return _breach(4, f"budget {blocking[0].name} forbids to evict {pod}") if blocking else ""

"""Two streams, one picture: who is a worker, who a stranger, what is in doubt; and what did not change stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.fleets import PROFILES, QUARTER, WHOLE, card, pod, timetable
from tests.support.fleets import node as ready
from vgpuctl.basics.change import changed
from vgpuctl.basics.names import Names
from vgpuctl.engine.dispatcher import Moment
from vgpuctl.engine.reactor import Goal, decide
from vgpuctl.engine.run_state import RunState
from vgpuctl.kube.stream import disks_of
from vgpuctl.kube.views import Renewal, SeenNode
from vgpuctl.kube.views import pod as pod_view
from vgpuctl.model.fleet import Fleet, Node, Power, Task
from vgpuctl.model.hold import Hold
from vgpuctl.model.hosts import Host
from vgpuctl.model.identity import NodeIdentity
from vgpuctl.model.machine import Machine
from vgpuctl.model.pods import Budget, Disk, Pod
from vgpuctl.model.profiles import Candidate, Catalogue, WorkerRule
from vgpuctl.model.record import ASLEEP, Record
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.model.workloads import Workload
from vgpuctl.observe.fleet_builder import FleetBuilder
from vgpuctl.operations import Preview, look_ahead
from vgpuctl.planning.steps.step import node_of
from vgpuctl.planning.wishes import Provisioning, label_wish, provision_wish, switch_wish
from vgpuctl.reporting.waits import sentence
from vgpuctl.vsphere.views import Outline, Vm


@dataclass
class Seen:
    """Both streams by hand."""

    some_vms: list[Vm] = field(default_factory=list)
    some_nodes: list[SeenNode] = field(default_factory=list)
    some_pods: list[Pod] = field(default_factory=list)
    holds: tuple[str, ...] = ()
    some_daemon_sets: frozenset[str] | None = None
    some_jobs: frozenset[str] = frozenset()
    some_disks: Mapping[str, list[Disk]] | None = None
    some_machines: list[Machine] = field(default_factory=list)
    some_renewals: list[Renewal] = field(default_factory=list)
    lost: tuple[Unreadable, ...] = ()
    lost_by_id: Mapping[str, Unreadable] = field(default_factory=dict)

    def vms(self) -> Mapping[str, Vm]:
        return {vm.outline.moid: vm for vm in self.some_vms}

    def hosts(self) -> Mapping[str, Host]:
        return {"host-1": Host(name="esx-1", cards=(card(0, *self.holds),))}

    def datastores(self) -> dict[str, int]:
        return {}

    def tasks(self) -> Mapping[str, tuple[Task, ...]]:
        return {}

    def nodes(self) -> list[SeenNode]:
        return self.some_nodes

    def renewals(self) -> list[Renewal]:
        return self.some_renewals

    def pods(self) -> list[Pod]:
        return self.some_pods

    def budgets(self) -> list[Budget]:
        return []

    def counting_jobs(self) -> frozenset[str]:
        return self.some_jobs

    def workloads(self) -> Mapping[str, Workload]:
        return {}

    def disks(self) -> Mapping[str, list[Disk]] | None:
        return self.some_disks

    def machines(self) -> list[Machine]:
        return self.some_machines

    def unseen(self) -> tuple[str, ...]:
        return ()

    def unreadable(self) -> tuple[Unreadable, ...]:
        return self.lost

    def unreadable_by_id(self) -> Mapping[str, Unreadable]:
        return self.lost_by_id

    def daemon_sets(self) -> frozenset[str] | None:
        return self.some_daemon_sets


def vm(moid: str, name: str, **more: object) -> Vm:
    outline = Outline(moid=moid, name=name, host="host-1")
    return replace(Vm(outline=outline, power=Power.ON, uuid=f"uuid-{moid}", vgpus=(QUARTER,)), **more)  # type: ignore[arg-type]


def node(name: str, of: str = "", **labels: str) -> SeenNode:
    return SeenNode(NodeIdentity(name, f"uuid-{of}", ""), Node(name=name, labels=labels))


def catalogue(*choices: WorkerRule) -> Catalogue:
    return Catalogue(PROFILES, choices)


def named(*patterns: str, profile: str = "v100-4q-4GB") -> WorkerRule:
    return WorkerRule(profile=profile, names=Names(patterns), where=f"profiles.yaml:{len(patterns)}")


def test_what_no_file_names_is_a_stranger_and_what_vcenter_has_not_is_missing() -> None:
    seen = Seen([vm("vm-1", "worker-1"), vm("vm-2", "other")], holds=("vm-1", "vm-2"))
    fleet = FleetBuilder(catalogue(named("worker-[1-2]"))).build(seen, seen)
    assert set(fleet.workers) == {"worker-1"}
    assert set(fleet.strangers) == {"other"}
    assert fleet.missing == ("worker-2",)
    assert fleet.hosts["esx-1"].cards[0].holds == ("worker-1", "other")


def test_two_vms_of_one_name_are_in_doubt() -> None:
    seen = Seen([vm("vm-1", "worker-1"), vm("vm-2", "worker-1")])
    fleet = FleetBuilder(catalogue(named("worker-1"))).build(seen, seen)
    assert {worker.vm: name for name, worker in fleet.workers.items()} == {
        "vm-1": "worker-1",
        "vm-2": "worker-1 (vm-2)",
    }
    for worker in fleet.workers.values():
        assert worker.doubts == ("several VMs of vCenter have the name worker-1",)


def test_a_stranger_of_a_workers_name_is_told_apart() -> None:
    elsewhere = replace(vm("vm-2", "worker-1"), outline=Outline(moid="vm-2", name="worker-1", folder="/dc/vm/old"))
    here = replace(vm("vm-1", "worker-1"), outline=Outline(moid="vm-1", name="worker-1", folder="/dc/vm/gpu"))
    chosen = WorkerRule(profile="v100-4q-4GB", folder="/dc/vm/gpu")
    seen = Seen([elsewhere, here], holds=("vm-2", "vm-1"))
    fleet = FleetBuilder(catalogue(chosen)).build(seen, seen)
    assert fleet.worker("worker-1").vm == "vm-1"
    assert fleet.hosts["esx-1"].cards[0].holds == ("worker-1 (vm-2)", "worker-1")


def test_entries_that_contradict_each_other_are_a_doubt_that_names_their_lines() -> None:
    both = catalogue(named("gpu-*"), named("*-1", "x", profile="v100-16q-16GB"))
    seen = Seen([vm("vm-1", "gpu-1")])
    (worker,) = FleetBuilder(both).build(seen, seen).workers.values()
    (doubt,) = worker.doubts
    assert "profiles.yaml:1 and profiles.yaml:2" in doubt


FOLDER = "/dc/vm/gpu"
LABELLED_IN_FOLDER = WorkerRule(profile="v100-4q-4GB", folder=FOLDER, labels={"pool": "slices"})


def vm_in(folder: str, moid: str, name: str = "") -> Vm:
    found = vm(moid, name or f"capv-{moid}")
    return replace(found, outline=replace(found.outline, folder=folder, uuid=found.uuid))


def workers(builder: FleetBuilder, seen: Seen) -> set[str]:
    return set(builder.build(seen, seen).workers)


def test_a_worker_that_its_nodes_label_chose_stays_one_without_its_node() -> None:
    """A cloud provider may delete the node of a VM that sleeps; whoever chose it must still be able to wake it."""
    builder = FleetBuilder(catalogue(LABELLED_IN_FOLDER))
    seen = Seen([vm_in(FOLDER, "vm-1"), vm_in(FOLDER, "vm-2")], [node("n1", "vm-1", pool="slices"), node("n2", "vm-2")])
    assert workers(builder, seen) == {"capv-vm-1"}
    gone = replace(seen, some_nodes=seen.some_nodes[1:])
    assert workers(builder, gone) == {"capv-vm-1"}
    assert [each.name for each in builder.possible_workers([each.outline for each in seen.some_vms], ())] == [
        "capv-vm-1"
    ]
    moved = replace(gone, some_vms=[vm_in("/dc/vm/old", "vm-1")])
    assert workers(builder, moved) == set(), "where it is in vCenter counts now as before"
    relabelled = replace(seen, some_nodes=[node("n1", "vm-1", pool="other")])
    assert workers(builder, relabelled) == set()


def test_a_worker_whose_label_was_taken_off_before_its_node_went_is_none() -> None:
    builder = FleetBuilder(catalogue(LABELLED_IN_FOLDER))
    seen = Seen([vm_in(FOLDER, "vm-1")], [node("n1", "vm-1", pool="slices")])
    assert workers(builder, seen) == {"capv-vm-1"}
    assert workers(builder, replace(seen, some_nodes=[node("n1", "vm-1")])) == set()
    gone = replace(seen, some_nodes=[])
    assert workers(builder, gone) == set()
    assert builder.possible_workers([seen.some_vms[0].outline], ()) == []


def test_a_label_that_is_taken_off_between_two_looks_counts() -> None:
    """As where somebody takes the label off and deletes the node in one breath, and the daemon looks once a minute."""
    builder = FleetBuilder(catalogue(LABELLED_IN_FOLDER))
    seen = Seen([vm_in(FOLDER, "vm-1")], [node("n1", "vm-1", pool="slices")])
    assert workers(builder, seen) == {"capv-vm-1"}
    builder.learn([node("n1", "vm-1")])
    builder.learn([])
    assert workers(builder, replace(seen, some_nodes=[])) == set()


def test_a_node_makes_no_vm_a_worker_that_is_not_where_the_files_say() -> None:
    """Labels and uuid are its kubelet's own word: it may claim to be any VM."""
    builder = FleetBuilder(catalogue(LABELLED_IN_FOLDER))
    foreign, ours = vm_in("/dc/vm/infra", "vm-9", "database"), vm_in(FOLDER, "vm-1")
    rogue = node("rogue", "vm-9", pool="slices")
    seen = Seen([foreign, ours], [node("n1", "vm-1", pool="slices"), rogue], holds=("vm-1", "vm-9"))
    fleet = builder.build(seen, seen)
    assert (set(fleet.workers), set(fleet.strangers)) == ({"capv-vm-1"}, {"database"})
    assert [each.name for each in builder.possible_workers([foreign.outline, ours.outline], seen.some_nodes)] == [
        "capv-vm-1"
    ]
    assert not builder.catalogue.chosen(Candidate("database", labels={"pool": "slices"}))


def night_without(name: str, fleet: Fleet) -> Preview:
    """A shift in which this worker would sleep."""
    table = timetable(day=(name,), night=())
    return look_ahead(fleet, switch_wish(fleet, catalogue(LABELLED_IN_FOLDER), table, "night"))


def test_no_suspend_is_planned_for_a_foreign_vm_that_a_node_claims_to_be() -> None:
    builder = FleetBuilder(catalogue(LABELLED_IN_FOLDER))
    seen = Seen([vm_in("/dc/vm/infra", "vm-9", "database")], [node("rogue", "vm-9", pool="slices")], holds=("vm-9",))
    preview = night_without("database", builder.build(seen, seen))
    assert (list(preview.plan), preview.refusals) == ([], ())


def test_a_worker_that_two_nodes_claim_is_refused_before_it_sleeps_and_held_where_it_was_about_to() -> None:
    builder = FleetBuilder(catalogue(LABELLED_IN_FOLDER))
    true, rogue = node("n1", "vm-1", pool="slices"), node("rogue", "vm-1", pool="slices")
    seen = Seen([vm_in(FOLDER, "vm-1")], [true], holds=("vm-1",))
    agreed = night_without("capv-vm-1", builder.build(seen, seen))
    assert "Suspend/capv-vm-1" in agreed.plan.ids
    claimed = replace(seen, some_nodes=[true, rogue])
    after = builder.build(claimed, claimed)
    told = "the nodes n1 and rogue both claim to be VM capv-vm-1"
    refused = night_without("capv-vm-1", after)
    (refusal,) = refused.refusals
    assert (list(refused.plan), told in refusal.message) == ([], True)
    decision = decide(Goal(wish=agreed.wish), after, RunState(), Moment(now_s=0.0, utc=""))
    assert (decision.sends, {sentence(wait) for wait in decision.waits.values()}) == ((), {told})


def test_labels_alone_choose_nobody_however_the_choice_came_about() -> None:
    for choice in (
        WorkerRule(profile="none", labels={"pool": "slices"}),
        WorkerRule(profile="none", labels={"pool": "slices"}, names=Names(("*",)), folder="/*", cluster="?*"),
    ):
        assert not choice.takes(Candidate("any", "/dc/vm", "gpu", {"pool": "slices"}))


def test_a_vm_that_two_nodes_claim_is_a_worker_in_doubt_if_either_is_labelled() -> None:
    """Else nobody would hear of it, and the true node's worker would quietly be none."""
    builder = FleetBuilder(catalogue(LABELLED_IN_FOLDER))
    true, rogue = node("n1", "vm-1", pool="slices"), node("rogue", "vm-1")
    seen = Seen([vm_in(FOLDER, "vm-1")], [true, rogue])
    fleet = builder.build(seen, seen)
    worker = fleet.worker("capv-vm-1")
    assert (worker.node, worker.doubts) == (None, ("the nodes n1 and rogue both claim to be VM capv-vm-1",))
    assert {each.name for each in fleet.elsewhere} == {"n1", "rogue"}


def test_another_node_without_the_label_makes_a_worker_doubtful_and_not_none() -> None:
    """As where the node of a VM that sleeps was deleted, and a foreign one claims to be that VM."""
    builder = FleetBuilder(catalogue(LABELLED_IN_FOLDER))
    seen = Seen([vm_in(FOLDER, "vm-1")], [node("n1", "vm-1", pool="slices")])
    assert workers(builder, seen) == {"capv-vm-1"}
    claimed = replace(seen, some_nodes=[node("rogue", "vm-1")])
    worker = builder.build(claimed, claimed).worker("capv-vm-1")
    assert worker.doubts == ("node rogue claims to be VM capv-vm-1, but node n1 was in it before",)
    again = builder.build(seen, seen).worker("capv-vm-1")
    assert (again.doubts, again.node and again.node.name) == ((), "n1")
    anew = replace(seen, some_nodes=[node("n2", "vm-1", pool="slices")])
    assert builder.build(anew, anew).worker("capv-vm-1").doubts == ()


def test_vms_from_afar_are_interesting_by_their_nodes_labels() -> None:
    builder = FleetBuilder(catalogue(LABELLED_IN_FOLDER))
    vms = [Outline(moid=f"vm-{n}", name=f"any-{n}", uuid=f"uuid-vm-{n}", folder=FOLDER) for n in range(3)]
    nodes = [node("n1", "vm-1", pool="slices"), node("n2", "vm-2")]
    assert [vm.moid for vm in builder.possible_workers(vms, nodes)] == ["vm-1"]


def test_what_did_not_change_is_the_same_object() -> None:
    builder = FleetBuilder(catalogue(named("worker-[1-2]")))
    seen = Seen([vm("vm-1", "worker-1"), vm("vm-2", "worker-2")], [node("a", "vm-1"), node("b", "vm-2")])
    before = builder.build(seen, seen)
    after = builder.build(replace(seen, some_pods=[pod("p", "a")]), seen := replace(seen, some_pods=[pod("p", "a")]))
    assert after.worker("worker-2") is before.worker("worker-2")
    assert after.worker("worker-1") is not before.worker("worker-1")
    assert [each.name for each in node_of(after, "worker-1").pods] == ["p"]


def test_a_wish_for_no_vgpu_makes_a_worker_too() -> None:
    seen = Seen([vm("vm-1", "worker-1", vgpus=(WHOLE,))])
    fleet = FleetBuilder(catalogue(named("worker-1", profile="none"))).build(seen, seen)
    assert fleet.worker("worker-1").profile == "none"


def test_pods_whose_daemon_set_is_gone_are_orphans_where_that_can_be_seen() -> None:
    builder = FleetBuilder(catalogue(named("worker-1")))
    agents = [pod(name, "n", owner=f"DaemonSet/{name}") for name in ("here", "gone")]
    seen = Seen([vm("vm-1", "worker-1")], [node("n", "vm-1")], agents)
    assert not any(each.orphaned for each in node_of(builder.build(seen, seen), "worker-1").pods)
    seen = replace(seen, some_daemon_sets=frozenset({"default/here"}))
    assert [each.orphaned for each in node_of(builder.build(seen, seen), "worker-1").pods] == [False, True]


def test_pods_of_jobs_that_count_evictions_are_counted() -> None:
    builder = FleetBuilder(catalogue(named("worker-1")))
    pods = [pod(name, "n", owner=f"Job/{name}") for name in ("strict", "patient")]
    seen = Seen([vm("vm-1", "worker-1")], [node("n", "vm-1")], pods, some_jobs=frozenset({"default/strict"}))
    assert [each.counted for each in node_of(builder.build(seen, seen), "worker-1").pods] == [True, False]


def test_a_pod_that_should_have_ended_is_overdue() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    builder = FleetBuilder(catalogue(named("worker-1")), lambda: now)
    ends = [pod(f"p{n}", "n", terminating=True, ends_by=f"2026-01-01T00:0{n}:00Z") for n in range(2)]
    seen = Seen([vm("vm-1", "worker-1")], [node("n", "vm-1")], [pod("runs", "n"), *ends])
    assert [each.overdue_s for each in node_of(builder.build(seen, seen), "worker-1").pods] == [0, 0, 0]
    now += timedelta(seconds=75)
    assert [each.overdue_s for each in node_of(builder.build(seen, seen), "worker-1").pods] == [0, 75, 15]


def test_a_worker_stays_the_same_while_its_pods_end_in_time() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    builder = FleetBuilder(catalogue(named("worker-1")), lambda: now)
    ends = pod("p", "n", terminating=True, ends_by="2026-01-01T00:00:30Z")
    seen = Seen([vm("vm-1", "worker-1")], [node("n", "vm-1")], [ends])
    before = builder.build(seen, seen).worker("worker-1")
    now += timedelta(seconds=20)
    assert builder.build(seen, seen).worker("worker-1") is before
    now += timedelta(seconds=20)
    assert builder.build(seen, seen).worker("worker-1") is not before


def test_volumes_hang_on_nodes_with_the_claims_that_they_are_bound_to() -> None:
    builder = FleetBuilder(catalogue(named("worker-1")))
    seen = Seen([vm("vm-1", "worker-1")], [node("n", "vm-1")])
    assert node_of(builder.build(seen, seen), "worker-1").disks == ()
    found = disks_of(
        [("n", "pv-1"), ("other", "pv-2"), ("n", "csi-0")], [("pv-1", "default/data"), ("", "default/new")]
    )
    seen = replace(seen, some_disks=found)
    disks = node_of(builder.build(seen, seen), "worker-1").disks
    assert disks == (Disk("csi-0"), Disk("pv-1", "default/data"))


def test_a_pod_claims_what_it_names_and_what_is_made_for_it() -> None:
    volumes = [{"persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp", "ephemeral": {}}, {"emptyDir": {}}]
    raw = {"metadata": {"namespace": "lab", "name": "p", "uid": "u"}, "spec": {"volumes": volumes}}
    assert pod_view(raw).claims == ("lab/data", "lab/p-tmp")


def a_machine(name: str, of: str = "") -> Machine:
    return Machine(path=f"/{name}", namespace="gpu", name=name, uuid=f"uuid-{of}" if of else "")


def test_a_machine_is_found_by_what_the_node_says_else_by_the_vms_uuid() -> None:
    """The node may be gone while its VM sleeps, or may have registered anew without its annotations."""
    builder = FleetBuilder(catalogue(named("worker-1")))
    told = node("n", "vm-1")
    told = replace(told, node=replace(told.node, machine="gpu/said"))
    both = [a_machine("other"), a_machine("by-uuid", "vm-1"), a_machine("said")]
    seen = Seen([vm("vm-1", "worker-1")], [told], some_machines=both)

    def found(seen: Seen) -> str:
        machine = builder.build(seen, seen).worker("worker-1").machine
        return machine.name if machine else ""

    assert found(seen) == "said"
    assert found(replace(seen, some_nodes=[node("n", "vm-1")])) == "by-uuid"
    assert found(replace(seen, some_nodes=[])) == "by-uuid"
    assert found(replace(seen, some_nodes=[], some_machines=[*both, a_machine("twin", "vm-1")])) == ""


def test_how_long_a_kubelet_is_alive_again_is_told_by_its_renewals_and_our_own_clock() -> None:
    slept = Record(wish="night", state=ASLEEP, since="", lease="L0", heartbeat="H0")
    identity = NodeIdentity("worker-1", "uuid-vm-1", "")
    seen = Seen([vm("vm-1", "worker-1")], [SeenNode(identity, Node(name="worker-1", record=slept))])
    now_s = 0.0
    builder = FleetBuilder(
        catalogue(named("worker-1")), lambda: datetime(2026, 1, 5, tzinfo=UTC) + timedelta(seconds=now_s)
    )

    def alive_s(at_s: float, renewed: str) -> float:
        nonlocal now_s
        now_s = at_s
        seen.some_renewals = [Renewal("worker-1", renewed)]
        node = builder.build(seen, seen).workers["worker-1"].node
        assert node is not None
        return node.alive_s

    lived = ((0.0, "L0"), (60.0, "L1"), (69.0, "L1"), (70.0, "L2"), (75.0, "L2"), (80.0, "L3"))
    assert [alive_s(*moment) for moment in lived] == [0.0, 0.0, 0.0, 10.0, 10.0, 20.0]
    seen.some_vms = [vm("vm-1", "worker-1", power=Power.SUSPENDED)]
    assert alive_s(90.0, "L3") == 0.0
    seen.some_vms = [vm("vm-1", "worker-1")]
    assert alive_s(500.0, "L4") == 0.0, "what it did before it was suspended once more does not count"


# What cannot be read


def lost_pod(name: str, node: str) -> Unreadable:
    return Unreadable(kind="pod", name=name, why="it has no uid", node=node)


def by_day(**more: Any) -> Seen:
    """Two quarters awake, a whole one asleep: all on one card."""
    some = [vm("vm-1", "worker-1"), vm("vm-2", "worker-2"), vm("vm-3", "big", power=Power.SUSPENDED, vgpus=(WHOLE,))]
    some = [replace(each, memory_locked=True) for each in some]
    nodes = [SeenNode(NodeIdentity(name, f"uuid-vm-{n}", ""), ready(name)) for n, name in enumerate(NAMES, start=1)]
    return replace(Seen(some, nodes, holds=("vm-1", "vm-2")), **more)


NAMES = ("worker-1", "worker-2", "big")
OURS = catalogue(named("worker-1", "worker-2"), named("big", profile="v100-16q-16GB"))


def at_night(seen: Seen) -> Preview:
    fleet = FleetBuilder(OURS).build(seen, seen)
    shifts = timetable(day=("worker-1", "worker-2"), night=("big",))
    return look_ahead(fleet, switch_wish(fleet, OURS, shifts, "night"))


def doubts(seen: Seen) -> dict[str, tuple[str, ...]]:
    return {
        name: worker.doubts for name, worker in FleetBuilder(OURS).build(seen, seen).workers.items() if worker.doubts
    }


def refused(preview: Preview) -> str:
    assert not preview.plan
    return " ".join(refusal.message for refusal in preview.refusals)


def test_what_can_be_read_is_no_reason_against_a_night() -> None:
    assert at_night(by_day()).plan
    assert doubts(by_day()) == {}


def test_a_worker_with_a_pod_that_cannot_be_read_is_refused_before_the_first_cordon() -> None:
    seen = by_day(lost=(lost_pod("lab/a", "worker-1"), lost_pod("lab/b", "elsewhere")))
    assert doubts(seen) == {"worker-1": ("its pod lab/a cannot be read",)}
    assert "its pod lab/a cannot be read" in refused(at_night(seen))
    more = by_day(lost=tuple(lost_pod(f"lab/{n}", "worker-1") for n in range(5)))
    assert doubts(more) == {"worker-1": ("its pods lab/0 and 4 more cannot be read",)}


def test_a_pod_that_cannot_be_read_any_more_makes_the_worker_another() -> None:
    """What did not change is kept: this is a change."""
    builder, seen = FleetBuilder(OURS), by_day()
    assert builder.build(seen, seen).worker("worker-1").doubts == ()
    seen = by_day(lost=(lost_pod("lab/a", "worker-1"),))
    assert builder.build(seen, seen).worker("worker-1").doubts
    assert builder.build(by_day(), by_day()).worker("worker-1").doubts == ()


@pytest.mark.parametrize("name", ["worker-1", "ip-10-0-0-1"])
def test_a_worker_whose_node_cannot_be_read_is_left_alone(name: str) -> None:
    """Also where the node has another name than its VM: it may be that of any worker without one."""
    nodes = [seen for seen in by_day().some_nodes if seen.identity.name != "worker-1"]
    seen = by_day(some_nodes=nodes, lost=(Unreadable(kind="node", name=name, why="x"),))
    assert list(doubts(seen)) == ["worker-1"]
    assert f"node {name}" in refused(at_night(seen))
    fleet = FleetBuilder(OURS).build(seen, seen)
    for wish in (label_wish(fleet, OURS, prune=True), provision_wish(fleet, OURS, Provisioning())):
        assert not [step for step in look_ahead(fleet, wish).plan if step.subject == "worker-1"]
    halves = Provisioning(profile="v100-8q-8GB")
    assert not look_ahead(fleet, provision_wish(fleet, OURS, halves)).plan


def lost_vm(moid: str, name: str, **more: Any) -> dict[str, Any]:
    """As the shelves give it: assumed to run, on a card, with a vGPU of unknown size."""
    others = [each for each in by_day().some_vms if each.outline.moid != moid]
    lost = vm(moid, name, vgpus=("unknown-vgpu",), unreadable="'crashed' is no power state", **more)
    found = {moid: Unreadable(kind="vm", name=name, why=lost.unreadable)}
    return {"some_vms": [*others, lost], "lost_by_id": found}


def test_a_worker_whose_vm_cannot_be_read_is_not_missing_but_says_so() -> None:
    seen = by_day(**lost_vm("vm-2", "worker-2"))
    fleet = FleetBuilder(OURS).build(seen, seen)
    assert (fleet.missing, fleet.unreadable) == ((), ())
    assert fleet.worker("worker-2").doubts == ("its VM cannot be read: 'crashed' is no power state",)
    assert "its VM cannot be read" in refused(at_night(seen))


def test_nobody_starts_beside_a_vm_that_cannot_be_read() -> None:
    """What it takes of the card is not known, whosever it is."""
    seen = by_day(**lost_vm("vm-9", "other"), holds=("vm-1", "vm-2", "vm-9"))
    (named_,) = FleetBuilder(OURS).build(seen, seen).unreadable
    assert (named_.kind, named_.name) == ("vm", "other")
    assert set(doubts(seen)) == set(NAMES)
    assert "other, a VM on a card of its host, cannot be read" in refused(at_night(seen))


def test_a_vm_without_a_card_that_cannot_be_read_holds_up_nobody() -> None:
    lost = lost_vm("vm-9", "other")
    lost["some_vms"][-1] = replace(lost["some_vms"][-1], vgpus=())
    assert doubts(by_day(**lost)) == {}
    assert at_night(by_day(**lost)).plan


def test_workers_of_a_host_that_cannot_be_read_are_left_alone() -> None:
    seen = by_day(lost_by_id={"host-1": Unreadable(kind="host", name="esx-1", why="x")})
    assert set(doubts(seen)) == set(NAMES)
    assert "its host esx-1 cannot be read" in refused(at_night(seen))


def test_a_plan_names_what_was_left_out_of_the_picture() -> None:
    """Where no worker is in doubt for it, too: budgets, workloads and pods elsewhere may matter."""
    lost = [Unreadable(kind="poddisruptionbudget", name=f"lab/{n}", why="x") for n in range(5)]
    texts = [remark.message for remark in at_night(by_day(lost=tuple(lost))).remarks]
    assert "lab/0, lab/1, lab/2 and 2 more (poddisruptionbudget) cannot be read, and are left out." in texts


def test_a_hold_ends_by_the_clock_although_no_event_reports_it() -> None:
    """A worker is made anew only when its parts differ, so the end of a hold must be one of them."""
    at = [datetime(2026, 11, 20, 17, 59, 59, tzinfo=UTC)]
    builder = FleetBuilder(catalogue(named("worker-1")), lambda: at[0])
    seen = node("worker-1", of="vm-1")
    hold = Hold(who="anna", until=at[0] + timedelta(seconds=1))
    streams = Seen([vm("vm-1", "worker-1")], [replace(seen, node=changed(seen.node, hold=hold))])
    before = builder.build(streams, streams).worker("worker-1")
    assert before.hold == hold
    assert builder.build(streams, streams).worker("worker-1") is before
    at[0] += timedelta(seconds=1)
    assert builder.build(streams, streams).worker("worker-1").hold is None

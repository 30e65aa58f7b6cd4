"""Fleets and wishes made for tests: by hand, and at random from a seed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from vgpuctl.basics.change import changed
from vgpuctl.basics.names import Names
from vgpuctl.model.conduct import Conduct
from vgpuctl.model.fleet import Fleet, Node, Power, Worker
from vgpuctl.model.hosts import Card, Host
from vgpuctl.model.machine import Machine
from vgpuctl.model.pods import Budget, Disk, Pod
from vgpuctl.model.profiles import Catalogue, Profile
from vgpuctl.model.record import ASLEEP, CARD, FRAME, HOST, LEAVING, VGPU, Record
from vgpuctl.model.selectors import Selector
from vgpuctl.model.timetable import DrainOptions, Shift, Timetable
from vgpuctl.model.wish import Wish
from vgpuctl.model.workloads import Scaled, Workload, WorkloadSelector
from vgpuctl.planning.wishes import switch_wish

QUARTER, HALF, WHOLE = "grid_v100-4q", "grid_v100-8q", "grid_v100-16q"
PROFILES = {
    "v100-4q-4GB": Profile("v100-4q-4GB", (QUARTER,)),
    "v100-8q-8GB": Profile("v100-8q-8GB", (HALF,)),
    "v100-16q-16GB": Profile("v100-16q-16GB", (WHOLE,)),
}
MOST = {QUARTER: 4, HALF: 2, WHOLE: 1}
LABEL = "vgpu.type"


def with_worker(fleet: Fleet, name: str, **changes: Any) -> Fleet:
    return fleet.with_this(changed(fleet.worker(name), **changes))


def with_node(fleet: Fleet, name: str, **changes: Any) -> Fleet:
    return fleet.with_this(fleet.worker(name).with_node(**changes))


def pod(name: str, node: str | None = None, **more: Any) -> Pod:
    more = {"owner": "ReplicaSet/some", "namespace": "default", **more}
    return Pod(name=name, uid=f"uid-{name}", node=node, **more)


def node(name: str, **more: Any) -> Node:
    given = {"ready": True, "version": "1", "lease_renewed": "L1", "heartbeat": "H1", "gpus": 1}
    return Node(name=name, **{**given, **more})


BY_VGPU = {profile.vgpus: name for name, profile in PROFILES.items()}


def worker(name: str, vgpu: str = QUARTER, *, host: str = "esx-1", on: bool = True, **more: Any) -> Worker:
    """Wanted as he is, unless said otherwise."""
    given: dict[str, Any] = {
        "power": Power.ON if on else Power.OFF,
        "vgpus": (vgpu,),
        "node": node(name),
        "profile": BY_VGPU.get((vgpu,), ""),
    }
    return Worker(name=name, vm=f"vm-{name}", host=host, **{**given, **more})


def card(number: int, *holds: str) -> Card:
    return Card(pci_id=f"0000:{0x3B + number:02x}:00.0", model="V100-16", frame_mib=16384, holds=holds)


def fleet(*workers: Worker, cards: dict[str, list[Card]] | None = None, **more: Any) -> Fleet:
    """Hosts with one card each unless said otherwise; those who are on sit on it."""
    names = dict.fromkeys(w.host for w in workers)
    seated = {h: [card(0, *(w.name for w in workers if w.host == h and w.on))] for h in names}
    hosts = {h: Host(name=h, cards=tuple((cards or seated)[h]), offers=tuple(MOST)) for h in names}
    return Fleet(hosts=hosts, workers={w.name: w for w in workers}, **more)


CATALOGUE = Catalogue(PROFILES)
#: What is true of a quarter on the hosts made here.
LABELLED = {LABEL: "v100-4q-4GB", VGPU: QUARTER, FRAME: "4096", CARD: "V100-16", HOST: "esx-1"}


def timetable(drain: DrainOptions | None = None, conduct: Conduct | None = None, **awake: tuple[str, ...]) -> Timetable:
    shifts = {name: Shift(name, ("0 8 * * *",), workers=Names(workers)) for name, workers in awake.items()}
    drain, conduct = drain or DrainOptions(), conduct or Conduct()
    return Timetable(name="test", timezone="UTC", shifts=shifts, drain=drain, conduct=conduct)


def day_and_night(**more: Any) -> tuple[Fleet, Wish]:
    """The mission's host by day, each with a pod, and the wish for the night."""
    day = [worker(f"worker-{n}", node=node(f"worker-{n}", pods=(pod(f"notebook-{n}"),))) for n in range(1, 5)]
    by_day = fleet(*day, worker("worker-5", WHOLE, on=False, power=Power.SUSPENDED), **more)
    return by_day, night_wish(by_day)


def night_wish(by_day: Fleet, drain: DrainOptions | None = None, conduct: Conduct | None = None) -> Wish:
    names = tuple(f"worker-{n}" for n in range(1, 5))
    return switch_wish(by_day, CATALOGUE, timetable(drain, conduct, day=names, night=("worker-5",)), "night")


def budget(name: str, allowed: int, **labels: str) -> Budget:
    return Budget(namespace="default", name=name, allowed=allowed, covers=Selector(labels))


@st.composite
def fleets_and_wishes(draw: st.DrawFn, max_hosts: int = 2, max_cards: int = 2) -> tuple[Fleet, Wish]:
    """Fleets that could be, in any state that a crash or a person could leave, and any shift over them."""
    workers: list[Worker] = []
    cards: dict[str, list[Card]] = {}
    for number in range(draw(st.integers(1, max_hosts))):
        host = f"esx-{number + 1}"
        seats, sitting = _seats(draw, host, draw(st.integers(1, max_cards)))
        cards[host] = seats
        workers += sitting
    some = fleet(*workers, cards=cards)
    awake = tuple(w.name for w in workers if draw(st.booleans()))
    others = tuple(w.name for w in workers)
    some = replace(some, workloads=_some_workloads(draw))
    table = timetable(shift=awake, all=others)
    shift = replace(
        table.shifts["shift"], scale=draw(st.sampled_from([(), (ANY_WORKLOAD,), (WorkloadSelector(name="w0"),)]))
    )
    wish = switch_wish(some, CATALOGUE, replace(table, shifts={**table.shifts, "shift": shift}), "shift")
    return some, replace(wish, drain_first=some_pods(draw, some))


def some_pods(draw: st.DrawFn, some: Fleet) -> frozenset[str]:
    """UIDs of pods that a try before could have failed on; often none."""
    uids = sorted(pod.uid for each in some.workers.values() if each.node for pod in each.node.pods)
    return draw(st.frozensets(st.sampled_from(uids), max_size=2)) if uids else frozenset()


ANY_WORKLOAD = WorkloadSelector(namespace="default")


def workload(name: str, replicas: int = 3, **more: Any) -> Workload:
    given: dict[str, Any] = {"kind": "deployment", "namespace": "default", "covers": Selector({"app": name})}
    return Workload(name=name, replicas=replicas, **{**given, **more})


def scaled(replicas: int | None, timetable: str = "test") -> Scaled:
    return Scaled(shift="shift", timetable=timetable, since="", replicas=replicas)


def _some_workloads(draw: st.DrawFn) -> dict[str, Workload]:
    marks, sizes = st.sampled_from([None, scaled(2), scaled(2, "another")]), st.sampled_from([0, 3])
    found = (workload(f"w{n}", draw(sizes), scaled=draw(marks)) for n in range(draw(st.integers(0, 2))))
    return {each.key: each for each in found}


def _seats(draw: st.DrawFn, host: str, count: int) -> tuple[list[Card], list[Worker]]:
    """Cards with a lawful load, and some workers who are off or suspended."""
    workers: list[Worker] = []
    cards = []
    for number in range(count):
        vgpu = draw(st.sampled_from(tuple(MOST)))
        names = [f"{host}-w{number}{n}" for n in range(draw(st.integers(0, MOST[vgpu])))]
        workers += [_some_worker(draw, name, host, vgpu, Power.ON) for name in names]
        cards.append(card(number, *names))
    for number in range(draw(st.integers(0, 4))):
        vgpu = draw(st.sampled_from(tuple(MOST)))
        power = draw(st.sampled_from([Power.OFF, Power.SUSPENDED]))
        workers.append(_some_worker(draw, f"{host}-s{number}", host, vgpu, power))
    return cards, workers


def _some_worker(draw: st.DrawFn, name: str, host: str, vgpu: str, power: Power) -> Worker:
    pods = tuple(
        pod(
            f"{name}-p{n}",
            name,
            owner=draw(st.sampled_from(["ReplicaSet/r", "DaemonSet/d", "DaemonSet/nvidia-device-plugin-ds"])),
            ready=draw(st.booleans()),
            labels=draw(st.sampled_from([{}, {"app": "w0"}])),
            claims=draw(st.sampled_from([(), ("default/data",)])),
        )
        for n in range(draw(st.integers(0, 2)))
    )
    record = draw(st.sampled_from([None, "shift", "other"]))
    disks = draw(st.sampled_from([(), (Disk("pv-1", "default/data"), Disk("pv-2"))]))
    inside = node(
        name,
        pods=pods,
        disks=disks,
        ready=draw(st.booleans()),
        unschedulable=draw(st.booleans()),
        labels=draw(st.sampled_from([{}, {LABEL: "v100-4q-4GB"}, {LABEL: "wrong", "theirs": "x"}])),
        record=record and _some_record(draw, record),
    )
    return worker(name, vgpu, host=host, power=power, node=inside, machine=draw(st.sampled_from(machines(name))))


def machine(name: str, **more: Any) -> Machine:
    return Machine(path=f"/machines/{name}", namespace="default", name=name, version="1", **more)


def machines(name: str) -> tuple[Machine | None, ...]:
    """Of a worker: none; bare; shielded by another, or by us; ours, of which somebody took the shield."""
    marked = ((False, False), (True, False), (True, True), (False, True))
    return None, *(machine(name, shielded=shielded, ours=ours) for shielded, ours in marked)


def _some_record(draw: st.DrawFn, wish: str) -> Record:
    state = draw(st.sampled_from([LEAVING, ASLEEP]))
    lease = draw(st.sampled_from(["L0", "L1", None]))
    return Record(wish=wish, state=state, since="", cordoned=draw(st.booleans()), lease=lease, heartbeat="H0")

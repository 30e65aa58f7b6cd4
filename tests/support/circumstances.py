"""What an adventure begins with, drawn by chance: the estate, its timetables and how they go about it, and its pods."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import pairwise

from tests.support.day import at_work, files_of
from vgpuctl.basics.names import Names
from vgpuctl.files import Files
from vgpuctl.kube.client import Object
from vgpuctl.kube.views import SILENT
from vgpuctl.model.conduct import Asleep, Conduct, Mode, OnResumeFailed, OnStuck
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.record import ON_SWITCH
from vgpuctl.model.share import Share
from vgpuctl.model.timetable import DrainOptions, Shift, Timetable
from vgpuctl.model.workloads import WorkloadSelector
from vgpuctl.sim.inventory import (
    CHRONY,
    NEVER,
    TOOLS,
    Durations,
    Group,
    HostSpec,
    Inventory,
    VmSpec,
    Workload,
    default_shifts,
    v100,
)

MOST_WORKERS = 12
APPS, CORE = "/apis/apps/v1/namespaces/default", "/api/v1/namespaces/default"
NIGHT_PROFILE = "v100-16q"
#: The shifts of each timetable, the earlier first.
SHIFTS = (("day", "night"), ("early", "late"))
DREAMER, KEEPER = "dreamer", "keeper"


@dataclass(frozen=True, slots=True)
class Seat:
    """The workers of one card: who is awake on it by day, who by night. Where profiles are replaced, some are both."""

    host: str
    day: tuple[str, ...]
    night: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """`pods`: what people create when the world has begun, each with the path of its kind."""

    inventory: Inventory
    files: Files
    durations: Durations
    pods: tuple[tuple[str, Object], ...]


def drawn(chance: random.Random) -> Circumstances:
    mode = Mode.REPLACE if chance.random() < 0.2 else Mode.SWAP
    seats = _seats(chance, mode)
    inventory = at_work(_inventory(seats, chance))
    files = files_of(inventory)
    tables = _timetables(chance, seats, files.catalogue, mode)
    return Circumstances(
        inventory=inventory,
        files=replace(files, timetables={table.name: table for table in tables}),
        durations=_durations(chance),
        pods=tuple(_pods(chance, inventory.groups[0].profile)),
    )


def with_scale(some: Circumstances, chance: random.Random) -> Circumstances:
    """At times the later shift of the first timetable has workloads at zero."""
    scale = chance.choice([(), (), ("notebooks",), ("web", "gateway"), ("[!s]*",)])
    table = next(iter(some.files.timetables.values()))
    *_, late = table.shifts
    shift = replace(table.shifts[late], scale=tuple(WorkloadSelector(kind="deployment", name=name) for name in scale))
    table = replace(table, shifts={**table.shifts, late: shift})
    return replace(some, files=replace(some.files, timetables={**some.files.timetables, table.name: table}))


def with_unkind_guests(some: Circumstances, chance: random.Random) -> Circumstances:
    """At times the clocks of guests lag after a resume for long, and a cloud provider taints their nodes."""
    clocks = chance.choice([(TOOLS,), (TOOLS, CHRONY, NEVER), (NEVER,)])
    vms = tuple(replace(vm, clock=chance.choice(clocks)) for vm in some.inventory.vms)
    cloud = chance.random() < 0.3
    return replace(some, inventory=replace(some.inventory, vms=vms, cloud_provider=cloud))


def _seats(chance: random.Random, mode: Mode) -> tuple[Seat, ...]:
    """Up to three hosts with a card or two; for each card a few by day and one by night."""
    hosts, cards = chance.choice([(1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)])
    most = MOST_WORKERS // (hosts * cards)
    each = chance.randrange(1, min(4, most if mode is Mode.REPLACE else most - 1) + 1)
    found = []
    for number in range(hosts * cards):
        first = 5 * number + 1
        day = tuple(f"worker-{first + n}" for n in range(each))
        night = day[:1] if mode is Mode.REPLACE else (f"worker-{first + each}",)
        found.append(Seat(f"esx-{number // cards + 1}", day, night))
    return tuple(found)


def _inventory(seats: tuple[Seat, ...], chance: random.Random) -> Inventory:
    size = "8q" if len(seats[0].day) <= 2 else "4q"
    by_day = [name for seat in seats for name in seat.day]
    by_night = [name for seat in seats for name in seat.night if name not in by_day]
    day = Group(f"v100-{size}", (f"grid_v100-{size}",), tuple(by_day))
    night = Group(NIGHT_PROFILE, (f"grid_{NIGHT_PROFILE}",), tuple(by_night))
    hosts = dict.fromkeys(seat.host for seat in seats)
    cards = {host: sum(seat.host == host for seat in seats) for host in hosts}
    vms = [VmSpec(name, seat.host) for seat in seats for name in dict.fromkeys((*seat.day, *seat.night))]
    return Inventory(
        "gpu",
        tuple(HostSpec(host, tuple(map(v100, range(cards[host])))) for host in hosts),
        (VmSpec("infra-1", seats[0].host, powered_on=True), *vms),
        (day, night),
        default_shifts(day, night),
        tuple(_workloads(chance, day, len(seats))),
    )


def _workloads(chance: random.Random, day: Group, cards: int) -> list[Workload]:
    found = [
        Workload(name="notebooks", replicas=len(day.workers), profile=day.profile),
        Workload(name="training", replicas=cards, kind="Job", profile=NIGHT_PROFILE),
        Workload(name="gateway", replicas=3, budget={"maxUnavailable": 1}, after_day=True),
    ]
    if chance.random() < 0.4:
        budget = {"maxUnavailable": chance.choice([0, 1, 1, 1, 2])}
        found.append(Workload(name="web", replicas=chance.randrange(2, 6), budget=budget))
    return found


def _timetables(chance: random.Random, seats: tuple[Seat, ...], catalogue: Catalogue, mode: Mode) -> list[Timetable]:
    """One for all cards, or two that share them, and at times a host."""
    cuts = [0, len(seats)]
    if len(seats) > 1 and chance.random() < 0.3:
        cuts.insert(1, chance.randrange(1, len(seats)))
    parts = [seats[first:end] for first, end in pairwise(cuts)]
    return [
        Timetable(
            name="-".join(names),
            timezone="Europe/Berlin",
            shifts={shift.name: shift for shift in _shifts(names, part, catalogue, mode)},
            drain=_drain(chance),
            conduct=_conduct(chance, mode),
            mode=mode,
            max_unavailable=chance.choice([None, None, None, Share(5), Share(2)]),
        )
        for names, part in zip(SHIFTS, parts, strict=False)
    ]


def _shifts(names: tuple[str, str], seats: tuple[Seat, ...], catalogue: Catalogue, mode: Mode) -> list[Shift]:
    by_day = Names(tuple(name for seat in seats for name in seat.day))
    by_night = Names(tuple(name for seat in seats for name in seat.night))
    small = next(profile for profile in catalogue.profiles.values() if profile.name != NIGHT_PROFILE)
    found = []
    for name, starts, workers, profile in (
        (names[0], "0 8 * * *", by_day, small),
        (names[1], "0 20 * * *", by_night, catalogue.profile(NIGHT_PROFILE)),
    ):
        carrying = ((workers, profile),) if mode is Mode.REPLACE else ()
        found.append(Shift(name, (starts,), workers=workers, carrying=carrying))
    return found


def _conduct(chance: random.Random, mode: Mode) -> Conduct:
    asleep = Asleep.OFF if mode is Mode.REPLACE else chance.choice([Asleep.SUSPEND, Asleep.SUSPEND, Asleep.OFF])
    return Conduct(
        on_stuck=chance.choice([OnStuck.BACK, OnStuck.BACK, OnStuck.WAIT, OnStuck.FORCE]),
        on_resume_failed=chance.choice(list(OnResumeFailed)),
        asleep=asleep,
        suspends_a_host=chance.choice([None, None, 1, 2]),
        suspends_a_datastore=chance.choice([None, None, None, 1]),
        power_off_after_s=chance.choice([None, 30.0]) if asleep is Asleep.OFF else None,
        all_or_nothing=chance.random() < 0.1,
    )


def _drain(chance: random.Random) -> DrainOptions:
    return DrainOptions(
        timeout_s=chance.choice([60.0, 120.0]),
        force=chance.random() < 0.5,
        delete_emptydir_data=chance.random() < 0.9,
        grace_period_s=chance.choice([None, None, None, 5]),
    )


def _durations(chance: random.Random) -> Durations:
    return Durations(
        suspend_s=chance.choice([0.5, 2.0, 15.0]),
        power_on_s=chance.choice([0.5, 2.0, 8.0]),
        kubelet_s=chance.choice([0.5, 1.0, 5.0]),
        pod_end_s=chance.choice([0.5, 1.5, 6.0]),
        guest_shutdown_s=chance.choice([1.0, 1.0, 20.0]),
        report_s=chance.choice([0.0, 0.0, 300.0]),
    )


def _pods(chance: random.Random, profile: str) -> list[tuple[str, Object]]:
    """Pods whose names come again, with disks or without; pods that sleep along; pods of every node."""
    found = [(f"{APPS}/statefulsets", _stateful(KEEPER, chance.choice([0, 2, 6]), disks=chance.random() < 0.5))]
    if chance.random() < 0.4:
        dreamers = _stateful(DREAMER, chance.randrange(1, 3), disks=chance.random() < 0.5)
        template = dreamers["spec"]["template"]
        template["metadata"]["annotations"] = {ON_SWITCH: "freeze"}
        template["spec"]["nodeSelector"] = {"vgpu.type": profile}
        template["spec"]["tolerations"] = [{"key": key, "operator": "Exists", "effect": "NoExecute"} for key in SILENT]
        found.append((f"{APPS}/statefulsets", dreamers))
    if chance.random() < 0.3:
        agent = _labelled("agent", {"template": _template("agent")})
        found.append((f"{APPS}/daemonsets", {"apiVersion": "apps/v1", "kind": "DaemonSet", **agent}))
    if chance.random() < 0.2:
        scratch = _labelled("scratch", {"replicas": 2, "template": _template("scratch")})
        scratch["spec"]["template"]["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {}}]
        found.append((f"{APPS}/deployments", {"apiVersion": "apps/v1", "kind": "Deployment", **scratch}))
    return found


def _stateful(name: str, replicas: int, *, disks: bool) -> Object:
    spec: Object = {"serviceName": name, "replicas": replicas, "podManagementPolicy": "Parallel"}
    spec["template"] = _template(name)
    if disks:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", **_labelled(name, spec)}


def _labelled(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": name}}, **spec}}


def _template(name: str) -> Object:
    container = {"name": "main", "image": "one", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}

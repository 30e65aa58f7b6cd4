"""Each field of the objects that we read, in turn replaced by nonsense, and all that is then made of the picture."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from tests.support.clients import kubectl
from tests.support.day import at_work, files_of
from tests.support.sight import Sight
from vgpuctl.basics.change import changed
from vgpuctl.cli.documents import as_json
from vgpuctl.kube import views
from vgpuctl.kube.lazy_reflector import QUOTAS, ROLLOUTS
from vgpuctl.kube.ledger import LedgerMap, ReadLedger
from vgpuctl.kube.ledger_entries import text_of as departure_text
from vgpuctl.kube.reflector import Reflector
from vgpuctl.kube.reflector import _name as name_in
from vgpuctl.kube.stream import KubernetesStream
from vgpuctl.model.departure import Departure
from vgpuctl.model.errors import VgpuctlError
from vgpuctl.model.fleet import Fleet
from vgpuctl.observe.fleet_builder import FleetBuilder
from vgpuctl.operations import look_ahead
from vgpuctl.planning.selection import Selection
from vgpuctl.planning.wishes import switch_wish
from vgpuctl.reporting.situation import situate
from vgpuctl.reporting.status_document import document
from vgpuctl.sim.inventory import Durations, Ha, default_inventory
from vgpuctl.sim.world import World

APPS, CORE, NAMESPACE = "/apis/apps/v1/namespaces/default", "/api/v1/namespaces/default", "kube-system"
SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
MISSING = object()
#: Wrong types, huge and negative numbers, odd characters, and nothing at all.
NONSENSE: tuple[Any, ...] = (
    *(MISSING, None, True, -1, 10**30, 1.5, "", "-1", "9" * 5000, "é\u202e\ud800"),
    *([], [None], [7], {}, {"é": None}),
)
#: Deeper than this, managed fields are alike.
DEEPEST_MANAGED = 6
#: What is asked for only when it is wanted, and the kind that a command reads beside its stream.
ASIDE = {"resourcequotas": QUOTAS, "rollouts": ROLLOUTS}
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of one object. `name`: the object's, with its namespace."""

    kind: str
    name: str
    path: Path

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {'.'.join(map(str, self.path))}"


def paths_in(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every field, and of each list the first element."""
    entries = (
        value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield (*path, key)
        if "managedFields" not in path or len(path) < DEEPEST_MANAGED:
            yield from paths_in(inner, (*path, key))


def with_nonsense(item: Any, path: Path, nonsense: Any) -> Any:
    """A copy with this field replaced, or without it."""
    found = inside = copy.deepcopy(item)
    for key in path[:-1]:
        inside = inside[key]
    if nonsense is MISSING:
        del inside[path[-1]]
    else:
        inside[path[-1]] = copy.deepcopy(nonsense)
    return found


class Estate:
    """An ordinary day with something of every kind that we read. `raw`: the objects of Kubernetes as it sends them.

    `unread`: the objects that could not be read when something was replaced last.
    """

    def __init__(self) -> None:
        inventory = replace(at_work(default_inventory(1, 1)), cluster_api=True, ha=Ha(memory_percent=10))
        self._world, self._files = World(inventory, Durations()), files_of(inventory)
        for path, body in _more_objects():
            kubectl(self._world.api, "POST", path, body)
        self._world.wait(60)
        self._stream = KubernetesStream(_NoServer(), lambda: None, drains=True, scales=True)  # type: ignore[arg-type]
        self._stream.reflectors["machines"]._view = partial(views.machine, at="/apis/cluster.x-k8s.io/v1beta2")
        departures = LedgerMap(_NoServer(), NAMESPACE).kind  # type: ignore[arg-type]
        self._reflectors: dict[str, Reflector] = {**self._stream.reflectors}
        for name, kind in {**ASIDE, "departures": departures}.items():
            self._reflectors[name] = Reflector(_NoServer(), kind, lambda: None)  # type: ignore[arg-type]
        self.raw = {name: self._listed(name) for name in self._reflectors}
        self._builder = FleetBuilder(self._files.catalogue, self._world.clock.utc)
        self.vcenter: Any = Sight(self._world)
        for name, items in self.raw.items():
            for item in items.values():
                self._put(name, item)
        self.unread: list[str] = []

    def fields(self) -> list[Field]:
        """Of two objects of each kind, so that pods with and without a node are among them."""
        found = []
        for kind, items in self.raw.items():
            assert items, kind
            for name in dict.fromkeys((next(iter(items)), next(reversed(items)))):
                found += [Field(kind, name, path) for path in paths_in(items[name])]
        return found

    def replaced(self, field: Field, nonsense: Any) -> str:
        """What is then shown and planned; "" if nothing is made of this field."""
        sound, reflector = self.raw[field.kind][field.name], self._reflectors[field.kind]
        item = with_nonsense(sound, field.path, nonsense)
        before = reflector.objects(), reflector.unreadable()
        name = self._put(field.kind, item)
        try:
            if (reflector.objects(), reflector.unreadable()) == before:
                return ""
            self.unread = [each.name for each in reflector.unreadable()]
            return self.look()
        finally:
            for kept in (reflector._objects, reflector._unreadable):
                kept.pop(name, None)
            self._put(field.kind, sound)

    def look(self) -> str:
        """Everything that status says, and the plans for both shifts with their refusals."""
        fleet, tables = self._fleet(), tuple(self._files.timetables.values())
        now = self._world.clock.utc()
        seen = situate(fleet, self._files.catalogue, tables, Selection(), now)
        aside = {name: [each for each in self._reflectors[name].objects() if each] for name in ASIDE}
        unread = [str(each) for name in ASIDE for each in self._reflectors[name].unreadable()]
        seen = seen.with_quotas(aside["resourcequotas"]).with_rollouts(aside["rollouts"])
        ahead = []
        for shift in tables[0].shifts:
            with suppress(VgpuctlError):
                ahead.append(look_ahead(fleet, switch_wish(fleet, self._files.catalogue, tables[0], shift, now)))
        said = [str((each.plan.ids, each.refusals, each.remarks)) for each in ahead]
        doubts = [f"{worker.name}: {' '.join(worker.doubts)}" for worker in fleet.workers.values()]
        return "\n".join([as_json(document(seen)), *said, *doubts, *unread])

    def _fleet(self) -> Fleet:
        built = self._builder.build(self.vcenter, self._stream)
        reflector = self._reflectors["departures"]
        known = next(iter(reflector.objects()), ReadLedger())
        unreadable = (*built.unreadable, *known.unreadable, *reflector.unreadable())
        return changed(built.with_ledger(known.known), unreadable=unreadable)

    def _put(self, kind: str, item: Any) -> str:
        """As a list does; the name under which it is kept."""
        kept = self._reflectors[kind]
        name = name_in(item) or "number 1 of the list"
        kept._put(name, item, kept._objects, kept._unreadable)
        return name

    def _listed(self, kind: str) -> dict[str, Any]:
        path = "/apis/cluster.x-k8s.io/v1beta2/machines" if kind == "machines" else self._reflectors[kind]._path
        items = kubectl(self._world.api, "GET", path)["items"]
        ours = (item for item in items if kind != "departures" or item["metadata"]["name"] == "vgpuctl")
        return {name_in(item): item for item in ours}


class _NoServer:
    """No server: a test puts the objects in."""

    settings = SimpleNamespace()


def _more_objects() -> Iterator[tuple[str, Any]]:
    """What an ordinary day does not have: disks, a pod on each node, an autoscaler, a quota and a departure."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    disks = [{"metadata": {"name": "data"}, "spec": claim}]
    yield f"{APPS}/statefulsets", _workload("keeper", serviceName="keeper", replicas=1, volumeClaimTemplates=disks)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
    yield f"{APPS}/daemonsets", _workload("agent", updateStrategy=rolling)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gateway"}
    scaler = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}
    yield SCALERS, {"metadata": {"name": "gateway"}, "spec": scaler}
    quota = {"hard": {"requests.nvidia.com/gpu": "8"}}
    yield f"{CORE}/resourcequotas", {"metadata": {"name": "gpus"}, "spec": quota}
    left = Departure(timetable="day-night", host="esx-1", origin="day", to="night", awake=("worker-1",), carried={})
    data = {"day-night.esx-1": departure_text(left)}
    yield f"/api/v1/namespaces/{NAMESPACE}/configmaps", {"metadata": {"name": "vgpuctl"}, "data": data}


def _workload(name: str, **spec: Any) -> Any:
    container = {"name": "main", "image": "one", "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec |= {"selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}

"""How quickly nodes in trouble may be emptied: one after another, and not at all while most of a zone is in trouble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.objects import Object, is_true, labels_of, name_of
from vgpuctl.sim.kube.store import Change

EXCLUDED = "node.kubernetes.io/exclude-disruption"
_PLACE = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
# The real controller's defaults, in nodes a second.
USUAL, SLOW, NEVER = 0.1, 0.01, 0.0
_LARGE, _FEW, _MOST = 50, 2, 0.55


@dataclass(slots=True)
class Zone:
    """Names of nodes. The excluded are in neither count, but may wait."""

    ready: set[str] = field(default_factory=set)
    troubled: set[str] = field(default_factory=set)
    waiting: dict[str, None] = field(default_factory=dict)
    next_s: float = 0.0

    @property
    def lost(self) -> bool:
        return bool(self.troubled) and not self.ready

    @property
    def pace(self) -> float:
        total = len(self.ready) + len(self.troubled)
        if self.lost or len(self.troubled) <= _FEW or len(self.troubled) / total < _MOST:
            return USUAL
        return SLOW if total > _LARGE else NEVER


class Zones:
    """Tells `let_go` of each node in trouble, at its zone's pace. When all zones are lost, nobody is told of any."""

    def __init__(self, context: ControllerContext, let_go: Callable[[str], None]) -> None:
        self._clock = context.clock
        self._let_go = let_go
        self._zones: dict[str, Zone] = {}
        context.store.subscribe(["nodes"], self._changed)

    def _changed(self, change: Change) -> None:
        name = name_of(change.object)
        before = _standing(change.before) if change.before else None
        after = _standing(change.object) if change.type != "DELETED" else None
        if before == after:
            return
        if before is not None:
            self._take(name, self._zones[before[0]])
        if after is not None:
            zone, counted, ready = after
            self._put(name, self._zones.setdefault(zone, Zone()), counted, ready)
        self._clock.after(0, self._look)

    def _take(self, name: str, zone: Zone) -> None:
        zone.ready.discard(name)
        zone.troubled.discard(name)
        zone.waiting.pop(name, None)

    def _put(self, name: str, zone: Zone, counted: bool, ready: bool) -> None:
        if counted:
            (zone.ready if ready else zone.troubled).add(name)
        if not ready:
            zone.waiting[name] = None

    def _look(self) -> None:
        if all(zone.lost for zone in self._zones.values()):
            return
        for zone in self._zones.values():
            self._serve(zone)

    def _serve(self, zone: Zone) -> None:
        now_s = self._clock.now_s
        if not zone.waiting or zone.pace == NEVER or now_s < zone.next_s:
            return
        name = next(iter(zone.waiting))
        del zone.waiting[name]
        zone.next_s = now_s + 1 / zone.pace
        self._clock.after(1 / zone.pace, self._look)
        self._let_go(name)


def _standing(node: Object) -> tuple[str, bool, bool]:
    """Its zone, whether it counts there, and whether it is well."""
    labels = labels_of(node)
    return "/".join(labels.get(part, "") for part in _PLACE), EXCLUDED not in labels, is_true(node, "Ready")

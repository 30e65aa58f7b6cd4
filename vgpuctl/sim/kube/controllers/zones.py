"""How fast unhealthy nodes of a zone may be emptied: one after another, and not at all while most of the zone is
unhealthy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.objects import Object, is_true, labels_of, name_of
from vgpuctl.sim.kube.store import Change

EXCLUDED = "node.kubernetes.io/exclude-disruption"
_ZONE_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
# The real controller's default rates, in nodes per second.
NORMAL, SLOW, NEVER = 0.1, 0.01, 0.0
_LARGE_ZONE, _FEW_TROUBLED, _UNHEALTHY_SHARE = 50, 2, 0.55


@dataclass(slots=True)
class Zone:
    """Names of nodes. Excluded nodes are neither ready nor troubled here, but may wait to be emptied.

    `unready`: all that are not ready; `waiting`: those of them that were not emptied yet.
    """

    ready: set[str] = field(default_factory=set)
    troubled: set[str] = field(default_factory=set)
    unready: dict[str, None] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    next_s: float = 0.0

    @property
    def lost(self) -> bool:
        # Kubernetes: full disruption. A zone that is wholly lost is emptied at the normal pace, if another zone lives.
        return bool(self.troubled) and not self.ready

    @property
    def pace(self) -> float:
        # Zone disruption in Kubernetes: with three unhealthy nodes and 55 % of the zone, evictions slow down or stop.
        total = len(self.ready) + len(self.troubled)
        if self.lost or len(self.troubled) <= _FEW_TROUBLED or len(self.troubled) / total < _UNHEALTHY_SHARE:
            return NORMAL
        # kube-controller-manager: `--large-cluster-size-threshold` is 50 by default.
        return SLOW if total > _LARGE_ZONE else NEVER


class Emptying(Protocol):
    """What is done about unhealthy nodes."""

    def allow_eviction(self, name: str) -> None:
        """Let the node be emptied."""

    def stop_evictions(self) -> None:
        """Let no node be emptied any more, also where it was allowed before."""

    def resume_evictions(self) -> None:
        """Judge every node's heartbeats from now on."""


class Zones:
    """Allows the eviction from each unhealthy node, at its zone's pace. While every zone is lost, it stops them all."""

    def __init__(self, context: ControllerContext, emptying: Emptying) -> None:
        self._clock = context.clock
        self._emptying = emptying
        self._disrupted = False
        self._zones: dict[str, Zone] = {}
        context.store.subscribe(["nodes"], self._changed)

    def _changed(self, change: Change) -> None:
        name = name_of(change.object)
        before = _zone_of(change.before) if change.before else None
        after = _zone_of(change.object) if change.type != "DELETED" else None
        if before == after:
            return
        if before is not None:
            self._remove(name, self._zones[before[0]])
        if after is not None:
            zone, counted, ready = after
            self._add(name, self._zones.setdefault(zone, Zone()), counted, ready)
        self._clock.after(0, self._serve_all)

    def _remove(self, name: str, zone: Zone) -> None:
        zone.ready.discard(name)
        zone.troubled.discard(name)
        zone.unready.pop(name, None)
        zone.waiting.pop(name, None)

    def _add(self, name: str, zone: Zone, counted: bool, ready: bool) -> None:
        if counted:
            (zone.ready if ready else zone.troubled).add(name)
        if not ready:
            zone.unready[name] = zone.waiting[name] = None

    def _serve_all(self) -> None:
        # Kubernetes: if all zones are lost, all evictions stop. A zone whose nodes are all excluded or gone is none.
        counted = [zone for zone in self._zones.values() if zone.ready or zone.troubled]
        disrupted = bool(counted) and all(zone.lost for zone in counted)
        if disrupted != self._disrupted:
            self._disrupted = disrupted
            self._switch()
        if disrupted:
            return
        for zone in self._zones.values():
            self._serve(zone)

    def _switch(self) -> None:
        """Enter or leave the state in which every zone is lost. Whoever was emptied before then waits again."""
        # Kubernetes (handleDisruption): entering it takes the NoExecute taints off all nodes; leaving it makes all
        # heartbeats count as of now. A cluster without any node that reports has more likely lost its network.
        if not self._disrupted:
            self._emptying.resume_evictions()
            return
        self._emptying.stop_evictions()
        for zone in self._zones.values():
            zone.waiting = dict(zone.unready)

    def _serve(self, zone: Zone) -> None:
        now_s = self._clock.now_s
        if not zone.waiting or zone.pace == NEVER or now_s < zone.next_s:
            return
        name = next(iter(zone.waiting))
        del zone.waiting[name]
        # Kubernetes: one node after another; 0.1 a second is one each 10 s.
        zone.next_s = now_s + 1 / zone.pace
        self._clock.after(1 / zone.pace, self._serve_all)
        self._emptying.allow_eviction(name)


def _zone_of(node: Object) -> tuple[str, bool, bool]:
    """Return the node's zone, whether the node counts there, and whether it is ready."""
    labels = labels_of(node)
    # Kubernetes: an excluded node counts for no zone. Sleepers without this label can stop all evictions there.
    return "/".join(labels.get(part, "") for part in _ZONE_LABELS), EXCLUDED not in labels, is_true(node, "Ready")

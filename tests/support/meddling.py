"""What people do meanwhile, by the usual doors. An act is drawn beforehand, so that it depends on nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress

from tests.support.clients import kubectl
from tests.support.judge import Judge
from vgpuctl.kube.client import Object
from vgpuctl.model.record import STATE_LABEL, record_annotations
from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.controllers.initial_objects import PROFILE_LABEL
from vgpuctl.sim.people import NotDone
from vgpuctl.sim.world import World

POWERS = ("power-on", "power-off", "suspend", "shut-down")
OURS = "vgpuctl.io/cordoned"
KUBELET_RESTARTS_AFTER_S = 3.0


class Meddling:
    """Knows which cordons are people's own, and tells the judge. `bare`: the nodes that were given a bare pod."""

    def __init__(self, world: World, judge: Judge, workers: tuple[str, ...], forget: Callable[[], None]) -> None:
        self._world, self._judge, self._workers, self._forget = world, judge, workers, forget
        self.bare: set[str] = set()
        self.told: list[str] = []
        self._acts: Mapping[str, Callable[[str, int], None]] = {
            "cordon": lambda name, _: self._cordon(name),
            "uncordon": lambda name, _: self._uncordon(name),
            "power": lambda name, number: self._power(POWERS[number % len(POWERS)], name),
            "delete-node": lambda name, _: self._delete_node(name),
            "label": self._label,
            "annotation": self._annotation,
            "delete-pod": self._delete_pod,
            "bare-pod": self._bare_pod,
            "forget-departures": lambda _name, _number: self._forget(),
        }

    def drawn(self, chance: random.Random) -> Callable[[], None]:
        """One thing that somebody will do."""
        what, name = chance.choice([*self._acts, "cordon", "power"]), chance.choice(self._workers)
        number = chance.randrange(1000)
        return lambda: self.do(what, name, number)

    def do(self, what: str, name: str, number: int) -> None:
        self.told.append(f"{self._world.clock.now_s:.1f} s: {what} {name} {number}")
        with suppress(NotDone, ApiError):
            self._acts[what](name, number)

    def _node(self, name: str) -> Object | None:
        return self._world.kubernetes.store.get("nodes", "", name)

    def _cordoned(self, name: str) -> bool:
        node = self._node(name)
        return bool(node and node["spec"].get("unschedulable"))

    def _cordon(self, name: str) -> None:
        """Where a cordon or our mark of one is already, nothing tells afterwards that somebody else wanted one."""
        if self._cordoned(name):
            return
        self._world.people.act(f"cordon {name}")
        node = self._node(name)
        if node and OURS not in node["metadata"].get("annotations", {}):
            self._judge.foreign.add(name)

    def _uncordon(self, name: str) -> None:
        self._world.people.act(f"uncordon {name}")
        self._judge.foreign.discard(name)

    def _power(self, verb: str, name: str) -> None:
        self._judge.powers(name, by=0)
        self._world.people.act(f"{verb} {name}")

    def _delete_node(self, name: str) -> None:
        """A kubelet that runs registers it anew, once somebody has restarted it."""
        self._world.people.act(f"delete-node {name}")
        self._judge.foreign.discard(name)
        self._world.clock.after(KUBELET_RESTARTS_AFTER_S, lambda: self._restart_kubelet(name))

    def _restart_kubelet(self, name: str) -> None:
        kubelet = self._world.kubernetes.kubelets[name]
        if not kubelet.running or self._node(name) is not None:
            return
        if not kubelet.reporting:
            self._world.clock.after(KUBELET_RESTARTS_AFTER_S, lambda: self._restart_kubelet(name))
        else:
            kubelet._register()
            kubelet._renew()
            kubelet._start_reporting(restarted=False)

    def _label(self, name: str, number: int) -> None:
        change = (f"{PROFILE_LABEL}=mine", f"{PROFILE_LABEL}-", f"{STATE_LABEL}-", f"{STATE_LABEL}=mine")
        self._world.people.act(f"label {name} {change[number % len(change)]}")

    def _annotation(self, name: str, number: int) -> None:
        """All of ours are gone, or one of them. Then nothing tells any more that a cordon is ours."""
        ours = record_annotations(None)
        gone = ours if number % 2 else dict([list(ours.items())[number // 2 % len(ours)]])
        node = self._node(name)
        bore = node and any(key in node["metadata"].get("annotations", {}) for key in gone)
        kubectl(self._world.api, "PATCH", f"/api/v1/nodes/{name}", {"metadata": {"annotations": gone}})
        lost = "vgpuctl.io/for" in gone or OURS in gone
        if bore and lost and self._cordoned(name):
            self._judge.foreign.add(name)

    def _delete_pod(self, name: str, number: int) -> None:
        if pods := self._world.kubernetes.store.where("pods", "spec.nodeName", name):
            pod = pods[number % len(pods)]["metadata"]
            self._world.people.act(f"delete-pod {pod['namespace']}/{pod['name']}")

    def _bare_pod(self, name: str, number: int) -> None:
        """Bound by whoever made it, so that no cordon keeps it away."""
        spec = {"nodeName": name, "containers": [{"name": "main", "image": "one"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"bare-{number}"}, "spec": spec}
        kubectl(self._world.api, "POST", "/api/v1/namespaces/default/pods", body)
        self.bare.add(name)

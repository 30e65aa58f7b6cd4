"""The kubelet of one VM: heartbeats, and the life of the pods that are bound to its node."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass

from vgpuctl.sim.inventory import Durations, VmSpec
from vgpuctl.sim.kube.controllers import volumes
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, Teller
from vgpuctl.sim.kube.machines import nodes, podlife
from vgpuctl.sim.kube.machines.machine import Machine
from vgpuctl.sim.kube.objects import (
    Object,
    is_finished,
    is_leaving,
    is_mirror,
    is_true,
    uid_of,
)
from vgpuctl.sim.kube.store import path_of

_SLOTS = 20
# How often a kubelet looks whether a disk has come.
VOLUME_S = 1.0


@dataclass(frozen=True, slots=True)
class MachineAddress:
    """Where a kubelet lives: its VM and the addresses that it gives out."""

    vm: VmSpec
    number: int

    @property
    def address(self) -> str:
        return f"10.1.{self.number // 250}.{self.number % 250 + 1}"

    def pod_address(self, count: int) -> str:
        return f"10.{64 + self.number // 256}.{self.number % 256}.{count % 254 + 1}"


class Kubelet(Machine):
    """Alive from the end of the guest's boot until the power goes. While frozen it does, hears and says nothing."""

    def __init__(
        self, context: ControllerContext, place: MachineAddress, durations: Durations, chance: random.Random
    ) -> None:
        super().__init__(context.clock, durations)
        self.place = place
        self.name = place.vm.name
        self.speaking = False
        self._context = context
        self._chance = chance
        self._teller = Teller("kubelet", self.name)
        self._gpus = 0
        self._boot_id = ""
        self._beat = 0
        self._pods_given = 0
        self._stage: dict[str, str] = {}
        # What was last posted: while the node still shows just that, a heartbeat is all there is to tell.
        self._posted: Object | None = None
        self._quiet_s = 0.0

    def boot(self, gpus: int) -> None:
        super().boot(gpus)
        self._gpus = gpus

    def freeze(self) -> None:
        super().freeze()
        self._beat += 1
        self.speaking = False

    def thaw(self) -> None:
        """The Lease is renewed before the status is posted, as measured."""
        was_frozen = self.frozen
        super().thaw()
        if was_frozen and self.guest_up and self._boot_id:
            self._time.after(self._durations.kubelet_s, self._first_lease)

    def halt(self) -> None:
        super().halt()
        self._stage.clear()
        self._beat += 1
        self._boot_id = ""
        self._posted = None
        self.speaking = False

    def start_now(self, gpus: int) -> None:
        """Machines that have been on for long do not all speak in the same instant, nor each in one of its own."""
        super().start_now(gpus)
        self._gpus = gpus
        self._start_kubelet(first_beat=(1 + self.place.number % _SLOTS) / _SLOTS)

    def adopt(self, pod: Object) -> str:
        """A pod that has run here since before the world began; the answer is its address."""
        self._begin(pod)
        return self.place.pod_address(self._pods_given)

    def _guest_is_up(self) -> None:
        super()._guest_is_up()
        self._time.after(self._durations.kubelet_s, self._start_kubelet)

    def _start_kubelet(self, first_beat: float = 1.0) -> None:
        self._boot_id = str(uuid.UUID(int=self._chance.getrandbits(128), version=4))
        self._register()
        self._renew()
        self._speak(restarted=True, first_beat=first_beat)

    def _first_lease(self) -> None:
        self._register()
        self._renew()
        self._time.after(self._durations.kubelet_s, lambda: self._speak(restarted=False))

    def _register(self) -> None:
        if self._context.store.get("nodes", "", self.name) is None:
            node = nodes.new_node(nodes.Boot(self.place.vm, self.place.address, self._boot_id))
            self._context.store.create("nodes", node)

    def _renew(self) -> None:
        node = self._context.store.get("nodes", "", self.name)
        now = self._context.clock.utc()
        if node is None:
            return
        lease = self._context.store.get("leases", nodes.LEASE_NAMESPACE, self.name)
        if lease is None:
            self._context.store.create("leases", nodes.new_lease(node, now))
        else:
            self._context.store.update("leases", nodes.renewed(lease, now))

    def _speak(self, *, restarted: bool, first_beat: float = 1.0) -> None:
        """Post the status, take up the pods again, and go on doing so; `first_beat`: after which part of a period."""
        self.speaking = True
        self._beat += 1
        self._post()
        for pod in self._own_pods():
            self._take_up(pod, restarted=restarted)
        beat = self._beat
        self._time.after(self._durations.heartbeat_s * first_beat, lambda: self._heartbeat(beat))

    def _heartbeat(self, beat: int) -> None:
        if beat == self._beat:
            self._renew()
            self._post()
            self._time.after(self._durations.heartbeat_s, lambda: self._heartbeat(beat))

    def _post(self) -> None:
        before = self._context.store.get("nodes", "", self.name)
        if before is None or self._has_no_news(before):
            return
        now = self._context.clock.utc()
        if before["status"] is self._posted:
            after: Object | None = self._context.store.update("nodes", nodes.with_heartbeat(before, now))
        else:
            boot = nodes.Boot(self.place.vm, self.place.address, self._boot_id, self._gpus)
            after = self._context.store.edit("nodes", "", self.name, lambda node: nodes.post_ready(node, now, boot))
        self._posted = after["status"] if after else None
        if after is not None and not is_true(before, "Ready"):
            self._context.tell(after, self._teller, "NodeReady", f"Node {self.name} status is now: NodeReady")

    def _has_no_news(self, node: Object) -> bool:
        """By its own clock, which stands still while the VM sleeps."""
        self._quiet_s += self._durations.heartbeat_s
        quiet = self._quiet_s <= self._durations.report_s and node["status"] == self._posted
        self._quiet_s = self._quiet_s if quiet else 0.0
        return quiet

    def _own_pods(self) -> list[Object]:
        return self._context.store.where("pods", "spec.nodeName", self.name)

    def _take_up(self, pod: Object, *, restarted: bool) -> None:
        ran = pod["status"]["phase"] == "Running" and not is_leaving(pod)
        if ran and restarted and not is_mirror(pod):
            self._restart(pod)
        elif ran and self._stage.get(uid_of(pod)) == "running":
            self._edit(pod, lambda item: podlife.ready_again(item, self._context.clock.utc()))
        self.look_at(self._present(pod) or pod)

    def _restart(self, pod: Object) -> None:
        """After a reboot: containers start anew where the pod's policy allows it, else the pod has failed."""
        now = self._context.clock.utc()
        if pod["spec"]["restartPolicy"] == "Never":
            self._edit(pod, lambda item: podlife.failed(item, now))
        else:
            self._edit(pod, lambda item: podlife.restarting(item, now))

    def look_at(self, pod: Object) -> None:
        """A pod of this node is new or has changed."""
        if not self.speaking or is_finished(pod):
            return
        uid = uid_of(pod)
        if is_leaving(pod):
            if self._stage.get(uid) != "ending":
                self._end(pod)
        elif uid not in self._stage:
            self._start(pod)

    def forget(self, pod: Object) -> None:
        self._stage.pop(uid_of(pod), None)

    def _start(self, pod: Object) -> None:
        self._stage[uid_of(pod)] = "starting"
        now = self._context.clock.utc()
        self._edit(pod, lambda item: podlife.creating(item, now, self.place.address))
        self._time.after(self._durations.kubelet_s, lambda: self._started(pod))

    def _started(self, pod: Object) -> None:
        if self._stage.get(uid_of(pod)) != "starting":
            return
        if not volumes.are_there(self._context, pod):
            self._time.after(VOLUME_S, lambda: self._started(pod))
            return
        self._begin(pod)
        now, address = self._context.clock.utc(), self.place.pod_address(self._pods_given)
        self._edit(pod, lambda item: podlife.running(item, now, address))

    def _begin(self, pod: Object) -> None:
        self._stage[uid_of(pod)] = "running"
        self._pods_given += 1
        if podlife.ends_by_itself(pod):
            self._time.after(self._durations.training_s, lambda: self._succeeded(pod))

    def _succeeded(self, pod: Object) -> None:
        if self._stage.get(uid_of(pod)) == "running":
            now = self._context.clock.utc()
            self._edit(pod, lambda item: podlife.succeeded(item, now))

    def _end(self, pod: Object) -> None:
        was = self._stage.get(uid_of(pod))
        self._stage[uid_of(pod)] = "ending"
        if was == "running":
            for container in pod["spec"]["containers"]:
                self._context.tell(pod, self._teller, "Killing", f"Stopping container {container['name']}")
        grace_s = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        self._time.after(min(self._durations.pod_end_s, grace_s), lambda: self._ended(pod))

    def _ended(self, pod: Object) -> None:
        present = self._present(pod)
        if present is None:
            return
        if present["metadata"].get("finalizers"):
            now = self._context.clock.utc()
            self._edit(pod, lambda item: podlife.failed(item, now))
            self._edit(pod, lambda item: item["metadata"].update(deletionGracePeriodSeconds=0))
        else:
            self._context.store.remove(*path_of("pods", pod))

    def _present(self, pod: Object) -> Object | None:
        present = self._context.store.get(*path_of("pods", pod))
        return present if present is not None and uid_of(present) == uid_of(pod) else None

    def _edit(self, pod: Object, change: podlife.Edit) -> None:
        if self._present(pod) is not None:
            self._context.store.edit(*path_of("pods", pod), change)

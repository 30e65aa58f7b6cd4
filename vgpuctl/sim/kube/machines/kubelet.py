"""The kubelet of one VM: its heartbeats, and the pods that are bound to its node."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass

from vgpuctl.sim.inventory import Durations, VmSpec
from vgpuctl.sim.kube.controllers import volumes
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.machines import nodes, pod_status
from vgpuctl.sim.kube.machines.gpu_machine import GpuMachine
from vgpuctl.sim.kube.machines.gpu_stack import is_plugin
from vgpuctl.sim.kube.machines.guest_clock import GuestClock, set_after_s
from vgpuctl.sim.kube.machines.pod_tokens import REFUSED, PodTokens
from vgpuctl.sim.kube.objects import (
    Object,
    from_timestamp,
    is_finished,
    is_leaving,
    is_mirror,
    is_true,
    uid_of,
)
from vgpuctl.sim.kube.store import path_of

_SLOTS = 20
# How often a kubelet checks whether a disk is attached.
VOLUME_S = 1.0


@dataclass(frozen=True, slots=True)
class MachineAddress:
    """A kubelet's VM, its address, and the addresses of its pods."""

    vm: VmSpec
    number: int

    @property
    def address(self) -> str:
        return f"10.1.{self.number // 250}.{self.number % 250 + 1}"

    def pod_address(self, count: int) -> str:
        return f"10.{64 + self.number // 256}.{self.number % 256}.{count % 254 + 1}"


class Kubelet(GpuMachine):
    """Runs from the end of the guest's boot until power-off. While the VM is suspended it does nothing."""

    def __init__(
        self, context: ControllerContext, place: MachineAddress, durations: Durations, rng: random.Random
    ) -> None:
        super().__init__(context.clock, durations, place.vm)
        self.place = place
        self.name = place.vm.name
        self.reporting = False
        self._context = context
        self._rng = rng
        # Kubernetes: all times that a kubelet writes come from its guest's clock, and those of its events too.
        self._clock = GuestClock(context.clock)
        self.clock_set_by = place.vm.clock
        self._tokens = PodTokens(context.clock, (self._clock, self._time), self._show_refusals)
        self._event_source = EventSource("kubelet", self.name, self._clock.utc)
        self._boot_id = ""
        self._heartbeat_id = 0
        self._addresses_given = 0
        self._stage: dict[str, str] = {}
        self._deadlines_s: dict[str, int] = {}
        # The status posted last. While the node still has it, only the heartbeat has to change.
        self._posted: Object | None = None
        self._since_report_s = 0.0

    def freeze(self) -> None:
        super().freeze()
        self._tokens.catch_up()
        self._clock.stop()
        self._heartbeat_id += 1
        self.reporting = False

    def thaw(self) -> None:
        """The Lease is renewed first and the status later, as measured on a real kubelet."""
        was_frozen = self.frozen
        super().thaw()
        self._clock.go_on()
        self._set_clock_later()
        if was_frozen and self.guest_up and self._boot_id:
            # Measured on kubemark 1.36: the Lease was renewed within 1 s.
            # The node was still NotReady for more than 6 s.
            self._time.after(self._durations.kubelet_s, self._first_lease)

    def halt(self) -> None:
        super().halt()
        self._clock.set()
        self._tokens.clear()
        # A power-off loses everything that ran: the containers, and what the kubelet knew.
        self._stage.clear()
        self._deadlines_s.clear()
        self._heartbeat_id += 1
        self._boot_id = ""
        self._posted = None
        self.reporting = False

    def start_now(self, gpus: int) -> None:
        """Spread the first heartbeats over a period, but over few moments: many machines share each of them."""
        super().start_now(gpus)
        self._start_kubelet(first_beat=(1 + self.place.number % _SLOTS) / _SLOTS)

    def sleep_now(self, gpus: int) -> None:
        self._boot_id = self._new_boot_id()
        super().sleep_now(gpus)

    def set_clock_by(self, how: str) -> None:
        """Let this program set the guest's clock from now on."""
        self.clock_set_by = how
        self._set_clock_later()

    def _set_clock_later(self) -> None:
        delay_s = set_after_s(self.clock_set_by, self.place.vm, self._durations)
        if self._clock.lag_s and delay_s is not None:
            self._time.after(delay_s, self._set_clock)

    def _set_clock(self) -> None:
        self._clock.set()
        # kubelet: deadlines and the ends of tokens are moments of this clock, and may have passed by now.
        self._tokens.check()
        self._deadlines_s.clear()
        for pod in self._own_pods():
            self.sync_pod(pod)

    def adopt(self, pod: Object) -> str:
        """Take over a pod that runs here from the beginning; return its address."""
        self._mark_started(pod)
        return self.place.pod_address(self._addresses_given)

    def _guest_is_up(self) -> None:
        super()._guest_is_up()
        self._time.after(self._durations.kubelet_s, self._start_kubelet)

    def _start_kubelet(self, first_beat: float = 1.0) -> None:
        self._boot_id = self._new_boot_id()
        self._register()
        self._renew()
        self._start_reporting(restarted=True, first_beat=first_beat)

    def _new_boot_id(self) -> str:
        # kubelet: `nodeInfo.bootID` is another after each boot, and the same after a resume.
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def _first_lease(self) -> None:
        self._register()
        self._renew()
        self._time.after(self._durations.kubelet_s, lambda: self._start_reporting(restarted=False))

    def _register(self) -> None:
        # kubelet: a node that was deleted registers anew, without the labels and annotations that others gave it.
        if self._context.store.get("nodes", "", self.name) is None:
            node = nodes.new_node(nodes.Boot(self.place.vm, self.place.address, self._boot_id))
            self._context.store.create("nodes", node)

    def _renew(self) -> None:
        node = self._context.store.get("nodes", "", self.name)
        now = self._clock.utc()
        if node is None:
            return
        # kubelet: the Lease shows that it lives; the status is written less often.
        lease = self._context.store.get("leases", nodes.LEASE_NAMESPACE, self.name)
        if lease is None:
            self._context.store.create("leases", nodes.new_lease(node, now))
        else:
            self._context.store.update("leases", nodes.renewed(lease, now))

    def _start_reporting(self, *, restarted: bool, first_beat: float = 1.0) -> None:
        """Post the status, resume the pods, and start the heartbeats. `first_beat`: part of a period before the first
        one.
        """
        self.reporting = True
        self._heartbeat_id += 1
        if self._start_gpu_stack(self._context.store):
            self._hold_plugins()
        self._post_status()
        for pod in self._own_pods():
            self._resume_pod(pod, restarted=restarted)
        self._tokens.check()
        heartbeat_id = self._heartbeat_id
        self._time.after(self._durations.heartbeat_s * first_beat, lambda: self._heartbeat(heartbeat_id))

    def _heartbeat(self, heartbeat_id: int) -> None:
        if heartbeat_id == self._heartbeat_id:
            self._renew()
            self._post_status()
            self._time.after(self._durations.heartbeat_s, lambda: self._heartbeat(heartbeat_id))

    def _post_status(self) -> None:
        before = self._context.store.get("nodes", "", self.name)
        # kubelet: a status in which nothing changed is posted only every five minutes (decision 0003).
        if before is None or self._may_skip_status(before):
            return
        now = self._clock.utc()
        if before["status"] is self._posted:
            after: Object | None = self._context.store.update("nodes", nodes.with_heartbeat(before, now))
        else:
            boot = nodes.Boot(self.place.vm, self.place.address, self._boot_id, *self.gpus)
            after = self._context.store.edit("nodes", "", self.name, lambda node: nodes.post_ready(node, now, boot))
        self._posted = after["status"] if after else None
        if after is not None and not is_true(before, "Ready"):
            # kubelet: it says so itself; NodeNotReady comes from the node lifecycle controller.
            message = f"Node {self.name} status is now: NodeReady"
            self._context.record_event(after, self._event_source, "NodeReady", message)

    def _may_skip_status(self, node: Object) -> bool:
        """Return True if nothing changed within `report_s`, by the guest's time, which stands still during
        a suspend.
        """
        self._since_report_s += self._durations.heartbeat_s
        # kubelet: a status that differs from the last one posted is posted at once.
        # Most often it is the very same object, and need not be compared.
        unchanged = node["status"] is self._posted or node["status"] == self._posted
        may_skip = self._since_report_s < self._durations.report_s and unchanged
        self._since_report_s = self._since_report_s if may_skip else 0.0
        return may_skip

    def _hold_plugins(self) -> None:
        """A plugin that was Ready before a suspend is not, until its stack is up again."""
        now = self._clock.utc()
        for pod in filter(is_plugin, self._own_pods()):
            self._edit(pod, lambda item: pod_status.unready(item, now))

    def _gpu_stack_is_up(self) -> None:
        now = self._clock.utc()
        for pod in filter(is_plugin, self._own_pods()):
            stage = self._stage.get(uid_of(pod))
            if stage == "held":
                self._stage[uid_of(pod)] = "starting"
                self._started(pod)
            elif stage == "running":
                self._edit(pod, lambda item: pod_status.ready_again(item, now))

    def _post_gpus(self) -> None:
        # A real kubelet posts another number of devices within 10 s. Here it does at once, so that a laboratory is not
        # slower than its durations say.
        self._posted = None
        if self.reporting:
            self._post_status()

    def _own_pods(self) -> list[Object]:
        return self._context.store.where("pods", "spec.nodeName", self.name)

    def _resume_pod(self, pod: Object, *, restarted: bool) -> None:
        ran = pod["status"]["phase"] == "Running" and not is_leaving(pod)
        if ran and restarted and not is_mirror(pod):
            self._restart(pod)
        # Measured on kubemark 1.36: after a resume a pod has its UID, no restart, and is Ready again with its node.
        elif ran and self._stage.get(uid_of(pod)) == "running" and not self._is_held(pod):
            self._edit(pod, lambda item: pod_status.ready_again(item, self._clock.utc()))
        # kubelet: a deadline is a moment of the wall clock, and may have passed while the VM slept.
        self._deadlines_s.pop(uid_of(pod), None)
        self.sync_pod(self._present(pod) or pod)

    def _is_held(self, pod: Object) -> bool:
        """Return True if the pod cannot be Ready yet although its node is."""
        return self._waits_for_gpu_stack(pod) or self._tokens.refused(pod)

    def _restart(self, pod: Object) -> None:
        """After a reboot containers start again where the pod's restartPolicy allows it; otherwise the pod
        has failed.
        """
        now = self._clock.utc()
        # Kubernetes: a pod is never moved. It restarts on its node, or it has failed.
        if pod["spec"]["restartPolicy"] == "Never":
            self._edit(pod, lambda item: pod_status.failed(item, now))
        elif not self._rejected(pod):
            self._edit(pod, lambda item: pod_status.restarting(item, now))

    def sync_pod(self, pod: Object) -> None:
        """Start or end a pod of this node that is new or has changed."""
        # kubelet: while it is silent, pods that were deleted stay on their node.
        if not self.reporting or is_finished(pod):
            return
        uid = uid_of(pod)
        self._note_deadline(pod)
        if is_leaving(pod):
            if self._stage.get(uid) != "ending":
                self._end(pod)
        elif uid not in self._stage:
            self._start(pod)

    def forget(self, pod: Object) -> None:
        self._stage.pop(uid_of(pod), None)
        self._tokens.forget(pod)
        self._deadlines_s.pop(uid_of(pod), None)
        self._note_gone(pod)

    def _note_deadline(self, pod: Object) -> None:
        """Check the pod again when its deadline has come, also when that was moved."""
        limit_s, left_s = pod["spec"].get("activeDeadlineSeconds"), self._left_s(pod)
        if left_s is not None and self._deadlines_s.get(uid_of(pod)) != limit_s:
            self._deadlines_s[uid_of(pod)] = limit_s
            self._time.after(max(0.0, left_s), lambda: self._end_if_past_deadline(pod))

    def _left_s(self, pod: Object) -> float | None:
        """Return how long the pod may still be active; None if it has no deadline, or has not begun."""
        limit_s, began = pod["spec"].get("activeDeadlineSeconds"), pod["status"].get("startTime")
        if limit_s is None or not began:
            return None
        return float(limit_s) - (self._clock.utc() - from_timestamp(began)).total_seconds()

    def _end_if_past_deadline(self, pod: Object) -> None:
        present = self._present(pod)
        if present is None or is_finished(present) or is_leaving(present):
            return
        left_s = self._left_s(present)
        # datetime has microseconds, so the remaining time may be slightly above zero.
        if left_s is not None and left_s < 1e-3:
            message = pod_status.PAST_DEADLINE
            self._context.record_event(present, self._event_source, pod_status.DEADLINE_EXCEEDED, message)
            now = self._clock.utc()
            self._stage[uid_of(present)] = "ended"
            self._edit(present, lambda item: pod_status.past_deadline(item, now))

    def _rejected(self, pod: Object) -> bool:
        """Fail a pod for which there is no GPU; return True if it did."""
        if not self._lacks_gpus(pod):
            return False
        now, message = self._clock.utc(), pod_status.NO_DEVICE.format(nodes.GPU)
        self._stage[uid_of(pod)] = "ended"
        self._edit(pod, lambda item: pod_status.not_admitted(item, now, nodes.GPU))
        self._context.record_event(pod, self._event_source, pod_status.NOT_ADMITTED, message, warning=True)
        return True

    def _start(self, pod: Object) -> None:
        if self._rejected(pod):
            return
        self._stage[uid_of(pod)] = "starting"
        now = self._clock.utc()
        self._edit(pod, lambda item: pod_status.creating(item, now, self.place.address))
        self._time.after(self._durations.kubelet_s, lambda: self._started(pod))

    def _started(self, pod: Object) -> None:
        if self._stage.get(uid_of(pod)) != "starting":
            return
        # kubelet: a pod waits in ContainerCreating until its volumes are attached to its node.
        if not volumes.are_attached(self._context, pod):
            self._time.after(VOLUME_S, lambda: self._started(pod))
            return
        if self._waits_for_gpu_stack(pod):
            self._stage[uid_of(pod)] = "held"
            return
        self._mark_started(pod)
        now, address = self._clock.utc(), self.place.pod_address(self._addresses_given)
        self._edit(pod, lambda item: pod_status.running(item, now, address))
        if is_plugin(pod):
            self._post_gpus()

    def _mark_started(self, pod: Object) -> None:
        self._stage[uid_of(pod)] = "running"
        self._addresses_given += 1
        self._note_started(pod)
        self._tokens.issue(pod)
        if pod_status.ends_by_itself(pod):
            self._time.after(self._durations.training_s, lambda: self._succeeded(pod))

    def _succeeded(self, pod: Object) -> None:
        if self._stage.get(uid_of(pod)) == "running":
            now = self._clock.utc()
            self._edit(pod, lambda item: pod_status.succeeded(item, now))

    def _end(self, pod: Object) -> None:
        stage = self._stage.get(uid_of(pod))
        self._stage[uid_of(pod)] = "ending"
        if stage == "running":
            for container in pod["spec"]["containers"]:
                message = f"Stopping container {container['name']}"
                self._context.record_event(pod, self._event_source, "Killing", message)
        # Kubernetes: the containers are killed when the grace period is over, whatever they do.
        grace_s = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        self._time.after(min(self._durations.pod_end_s, grace_s), lambda: self._ended(pod))

    def _ended(self, pod: Object) -> None:
        present = self._present(pod)
        if present is None:
            return
        # Kubernetes: the kubelet is done with such a pod, and only its finalizer holds it.
        if present["metadata"].get("finalizers"):
            now = self._clock.utc()
            self._edit(pod, lambda item: pod_status.failed(item, now))
            self._edit(pod, lambda item: item["metadata"].update(deletionGracePeriodSeconds=0))
        else:
            self._context.store.remove(*path_of("pods", pod))

    def _show_refusals(self, pod: Object, refused: bool) -> None:
        """Show by the pod's readiness that its requests are refused, or no longer."""
        present = self._present(pod)
        if present is None or self._stage.get(uid_of(pod)) != "running":
            return
        self._edit(pod, lambda item: pod_status.probed(item, self._clock.utc(), passes=not refused))
        if refused:
            self._context.record_event(present, self._event_source, "Unhealthy", REFUSED, warning=True)

    def _present(self, pod: Object) -> Object | None:
        present = self._context.store.get(*path_of("pods", pod))
        return present if present is not None and uid_of(present) == uid_of(pod) else None

    def _edit(self, pod: Object, change: pod_status.Edit) -> None:
        if self._present(pod) is not None:
            self._context.store.edit(*path_of("pods", pod), change)

"""The kubelet of one VM: it registers its node, renews its Lease and posts its status."""

from __future__ import annotations

import random
import uuid

from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.machines import nodes
from vgpuctl.sim.kube.machines.gpu_machine import GpuMachine
from vgpuctl.sim.kube.machines.guest_clock import GuestClock, set_after_s
from vgpuctl.sim.kube.machines.machine_address import MachineAddress
from vgpuctl.sim.kube.machines.node_pods import NodePods
from vgpuctl.sim.kube.objects import Object, is_true

_SLOTS = 20


class Kubelet(GpuMachine):
    """Runs from the end of the guest's boot until power-off. While the VM is suspended it does nothing."""

    def __init__(
        self, context: ControllerContext, place: MachineAddress, durations: Durations, rng: random.Random
    ) -> None:
        super().__init__(context.clock, durations, place)
        self.name = place.vm.name
        self.reporting = False
        self._context = context
        self._rng = rng
        # Kubernetes: all times that a kubelet writes come from its guest's clock, and those of its events too.
        self._clock = GuestClock(context.clock)
        self.clock_set_by = place.vm.clock
        self._event_source = EventSource("kubelet", self.name, self._clock.utc)
        self.pods = NodePods(context, self, durations, (self._clock, self._time), self._event_source)
        self._boot_id = ""
        self._heartbeat_id = 0
        # The status posted last. While the node still has it, only the heartbeat has to change.
        self._posted: Object | None = None
        self._since_report_s = 0.0

    def freeze(self) -> None:
        super().freeze()
        self.pods.prepare_for_sleep()
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
        self.pods.clear()
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

    def sync_pod(self, pod: Object) -> None:
        """Start or end a pod of this node that is new or has changed."""
        # kubelet: while it is silent, pods that were deleted stay on their node.
        if self.reporting:
            self.pods.sync(pod)

    def post_gpus(self) -> None:
        # A real kubelet posts another number of devices within 10 s. Here it does at once, so that a laboratory is not
        # slower than its durations say.
        self._posted = None
        if self.reporting:
            self._post_status()

    def _set_clock_later(self) -> None:
        delay_s = set_after_s(self.clock_set_by, self.place.vm, self._durations)
        if self._clock.lag_s and delay_s is not None:
            self._time.after(delay_s, self._set_clock)

    def _set_clock(self) -> None:
        self._clock.set()
        self.pods.check_times()
        if self.reporting:
            self.pods.sync_all()

    def _guest_is_up(self) -> None:
        super()._guest_is_up()
        self._time.after(self._durations.kubelet_s, self._start_kubelet)

    def _gpu_stack_is_up(self) -> None:
        self.pods.release_plugins()

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
            self.pods.hold_plugins()
        self._post_status()
        self.pods.resume_all(restarted=restarted)
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

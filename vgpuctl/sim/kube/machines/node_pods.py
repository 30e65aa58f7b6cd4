"""The pods of one node: how its kubelet starts, runs and ends them."""

from __future__ import annotations

from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.kube.controllers import volumes
from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.machines import nodes, pod_status
from vgpuctl.sim.kube.machines.gpu_machine import GpuMachine
from vgpuctl.sim.kube.machines.gpu_stack import is_plugin
from vgpuctl.sim.kube.machines.guest_clock import GuestClock
from vgpuctl.sim.kube.machines.guesttime import GuestTime
from vgpuctl.sim.kube.machines.pod_tokens import REFUSED, PodTokens
from vgpuctl.sim.kube.objects import Object, from_timestamp, is_finished, is_leaving, is_mirror, uid_of
from vgpuctl.sim.kube.store import path_of

# How often a kubelet checks whether a disk is attached.
VOLUME_S = 1.0


class NodePods:
    """What a kubelet knows of its pods. It calls them when it reports, sleeps or boots. Between these moments each pod
    takes its steps by the guest's time, so a suspend stops them.
    """

    def __init__(
        self,
        context: ControllerContext,
        machine: GpuMachine,
        durations: Durations,
        guest: tuple[GuestClock, GuestTime],
        event_source: EventSource,
    ) -> None:
        self._context = context
        self._machine = machine
        self._durations = durations
        self._clock, self._time = guest
        self._event_source = event_source
        self._tokens = PodTokens(context.clock, guest, self._show_refusals)
        self._addresses_given = 0
        self._stage: dict[str, str] = {}
        self._deadlines_s: dict[str, int] = {}

    def adopt(self, pod: Object) -> str:
        """Take over a pod that runs here from the beginning; return its address."""
        self._mark_started(pod)
        return self._machine.place.pod_address(self._addresses_given)

    def sync(self, pod: Object) -> None:
        """Start or end a pod that is new or has changed."""
        if is_finished(pod):
            return
        uid = uid_of(pod)
        self._note_deadline(pod)
        if is_leaving(pod):
            if self._stage.get(uid) != "ending":
                self._end(pod)
        elif uid not in self._stage:
            self._start(pod)

    def forget(self, pod: Object) -> None:
        """Forget a pod whose object is gone."""
        self._stage.pop(uid_of(pod), None)
        self._tokens.forget(pod)
        self._deadlines_s.pop(uid_of(pod), None)
        self._machine.note_gone(pod)

    def sync_all(self) -> None:
        """Start or end all pods that need it."""
        for pod in self._own_pods():
            self.sync(pod)

    def resume_all(self, *, restarted: bool) -> None:
        """Go on with all pods once the kubelet reports again: after a boot (`restarted`), or after a suspend."""
        for pod in self._own_pods():
            self._resume(pod, restarted=restarted)
        self._tokens.check()

    def prepare_for_sleep(self) -> None:
        """Note what happened until now, while the guest's clock still runs."""
        self._tokens.catch_up()

    def check_times(self) -> None:
        """Judge tokens and deadlines anew, because the guest's clock was set. `sync` notes the deadlines again."""
        # kubelet: deadlines and the ends of tokens are moments of this clock, and may have passed by now.
        self._tokens.check()
        self._deadlines_s.clear()

    def clear(self) -> None:
        """Lose everything that ran, as a power-off does: the containers, and what the kubelet knew."""
        self._tokens.clear()
        self._stage.clear()
        self._deadlines_s.clear()

    def hold_plugins(self) -> None:
        """A plugin that was Ready before a suspend is not, until its stack is up again."""
        now = self._clock.utc()
        for pod in filter(is_plugin, self._own_pods()):
            self._edit(pod, lambda item: pod_status.unready(item, now))

    def release_plugins(self) -> None:
        """Start the plugins that waited for the GPU stack, or show that they are Ready again."""
        now = self._clock.utc()
        for pod in filter(is_plugin, self._own_pods()):
            stage = self._stage.get(uid_of(pod))
            if stage == "held":
                self._stage[uid_of(pod)] = "starting"
                self._started(pod)
            elif stage == "running":
                self._edit(pod, lambda item: pod_status.ready_again(item, now))

    def _resume(self, pod: Object, *, restarted: bool) -> None:
        ran = pod["status"]["phase"] == "Running" and not is_leaving(pod)
        if ran and restarted and not is_mirror(pod):
            self._restart(pod)
        # Measured on kubemark 1.36: after a resume a pod has its UID, no restart, and is Ready again with its node.
        elif ran and self._stage.get(uid_of(pod)) == "running" and not self._is_held(pod):
            self._edit(pod, lambda item: pod_status.ready_again(item, self._clock.utc()))
        # kubelet: a deadline is a moment of the wall clock, and may have passed while the VM slept.
        self._deadlines_s.pop(uid_of(pod), None)
        self.sync(self._present(pod) or pod)

    def _is_held(self, pod: Object) -> bool:
        """Return True if the pod cannot be Ready yet although its node is."""
        return self._machine.waits_for_gpu_stack(pod) or self._tokens.refused(pod)

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
        if not self._machine.lacks_gpus(pod):
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
        self._edit(pod, lambda item: pod_status.creating(item, now, self._machine.place.address))
        self._time.after(self._durations.kubelet_s, lambda: self._started(pod))

    def _started(self, pod: Object) -> None:
        if self._stage.get(uid_of(pod)) != "starting":
            return
        # kubelet: a pod waits in ContainerCreating until its volumes are attached to its node.
        if not volumes.are_attached(self._context, pod):
            self._time.after(VOLUME_S, lambda: self._started(pod))
            return
        if self._machine.waits_for_gpu_stack(pod):
            self._stage[uid_of(pod)] = "held"
            return
        self._mark_started(pod)
        now, address = self._clock.utc(), self._machine.place.pod_address(self._addresses_given)
        self._edit(pod, lambda item: pod_status.running(item, now, address))
        if is_plugin(pod):
            self._machine.post_gpus()

    def _mark_started(self, pod: Object) -> None:
        self._stage[uid_of(pod)] = "running"
        self._addresses_given += 1
        self._machine.note_started(pod)
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

    def _own_pods(self) -> list[Object]:
        return self._context.store.where("pods", "spec.nodeName", self._machine.place.vm.name)

    def _present(self, pod: Object) -> Object | None:
        present = self._context.store.get(*path_of("pods", pod))
        return present if present is not None and uid_of(present) == uid_of(pod) else None

    def _edit(self, pod: Object, change: pod_status.Edit) -> None:
        if self._present(pod) is not None:
            self._context.store.edit(*path_of("pods", pod), change)

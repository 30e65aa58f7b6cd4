"""The product with one thing wrong. Each mutant says what; the adventures must catch it."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import pytest

from vgpuctl.engine import reactor
from vgpuctl.engine.dispatcher import Dispatcher
from vgpuctl.engine.ports import Answer
from vgpuctl.kube import actions, reflector
from vgpuctl.kube.client import NotFoundError
from vgpuctl.kube.lease import ActingLease
from vgpuctl.kube.leases import holder_of
from vgpuctl.model.errors import StoppedError, VgpuctlError
from vgpuctl.model.fleet import Fleet, Node
from vgpuctl.model.record import Record
from vgpuctl.model.requests import Evict, PatchNode, PowerOffVm, Request, SuspendVm
from vgpuctl.planning import planner
from vgpuctl.planning.pods import drain
from vgpuctl.planning.steps import Cordon, Drain, PowerOn, WaitDetached, returning
from vgpuctl.planning.steps.step import node_of
from vgpuctl.vsphere import actions as vsphere
from vgpuctl.vsphere.session import Session
from vgpuctl.wire import follower
from vgpuctl.wire.follower import Follower

Patch = pytest.MonkeyPatch


def a_planner_that_acquires_before_it_releases(patch: Patch) -> None:
    sound = planner.plan_of_host

    def plan_of_host(*made_of: Any) -> planner.HostPlan:
        part = sound(*made_of)
        needs = dict(part.needs)
        for start in [step for rungs in part.ladders.values() for step in rungs if isinstance(step, PowerOn)]:
            stops = {step for step in needs[start.id] if step.kind in {"Suspend", "ShutDown"}}
            needs[start.id] -= stops
            needs |= {stop: needs[stop] | {start.id} for stop in stops}
        return planner.HostPlan(part.ladders, needs)

    patch.setattr(planner, "plan_of_host", plan_of_host)


def an_engine_that_ignores_the_uid(patch: Patch) -> None:
    def evict(client: Any, request: Evict) -> Answer:
        pod = request.pod
        body = {"apiVersion": "policy/v1", "kind": "Eviction"}
        body |= {"metadata": {"name": pod.name, "namespace": pod.namespace}}  # type: ignore[dict-item]
        try:
            client.post(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction", body)
        except NotFoundError:
            return Answer()
        return Answer()

    patch.setattr(actions, "evict", evict)


def a_resume_without_the_lease_check(patch: Patch) -> None:
    patch.setattr(returning, "_old_evidence", lambda _: "")


def a_cordon_that_does_not_record(patch: Patch) -> None:
    def requests(step: Cordon, fleet: Fleet, _: str) -> tuple[Request, ...]:
        return (PatchNode(node=node_of(fleet, step.worker).name, unschedulable=True),)

    patch.setattr(Cordon, "requests", requests)


def a_cordon_that_is_always_ours(patch: Patch) -> None:
    sound = Cordon._record

    def record(step: Cordon, node: Node, now: str) -> Record:
        return replace(sound(step, node, now), cordoned=True)

    patch.setattr(Cordon, "_record", record)


def a_suspend_without_the_last_list(patch: Patch) -> None:
    patch.setattr(actions, "confirm", lambda _client, _request: None)


def a_way_back_that_forgets_a_suspend(patch: Patch) -> None:
    patch.setattr(Dispatcher, "_goes_down", lambda _look, _worker: False)


def a_drain_that_spares_nobody(patch: Patch) -> None:
    patch.setattr(drain, "sleeps_along", lambda _pod, _options: False)


def a_switch_without_turns(patch: Patch) -> None:
    patch.setattr(reactor, "queued", lambda *_: {})


def a_stop_that_waits_for_no_volume(patch: Patch) -> None:
    patch.setattr(WaitDetached, "is_done", lambda _step, _worker: True)


def a_drain_that_asks_again_and_again(patch: Patch) -> None:
    patch.setattr(Dispatcher, "_may_send_again", lambda *_: True)
    patch.setattr(Dispatcher, "_let_rest", lambda *_: None)
    patch.setattr(
        Drain, "requests", lambda step, fleet, _: tuple(step._eviction(fleet, pod) for pod in step._pods(fleet))
    )


def a_suspend_that_cuts_the_power(patch: Patch) -> None:
    sound = vsphere.send

    def send(session: Session, request: vsphere.VmRequest) -> Answer:
        wrong = PowerOffVm(worker=request.worker, vm=request.vm)
        return sound(session, wrong if isinstance(request, SuspendVm) else request)

    patch.setattr(vsphere, "send", send)


def an_attach_that_leaves_the_old_vgpu(patch: Patch) -> None:
    patch.setattr(vsphere, "vgpu_devices", lambda _: ())


def a_stream_that_catches_only_our_errors(patch: Patch) -> None:
    def keep_listening(stream: Follower) -> None:
        while not stream._closed.is_set():
            try:
                stream._listen()
            except VgpuctlError as error:
                stream._closed.wait(stream._mark_silent(error))

    patch.setattr(Follower, "_keep_listening", keep_listening)


def a_stream_that_a_listener_may_end(patch: Patch) -> None:
    patch.setattr(follower, "suppress", lambda *_: nullcontext())


def a_list_that_may_go_back_in_time(patch: Patch) -> None:
    patch.setattr(reflector, "as_number", lambda _: 0)


def a_list_of_any_kind(patch: Patch) -> None:
    patch.setattr(reflector.Reflector, "_is_foreign", lambda *_: False)


def a_lease_that_is_taken_on_interrupt(patch: Patch) -> None:
    def become_holder(mine: ActingLease, say: Any, stop: Any) -> bool:
        found = mine._keeper.read()
        if found is not None and holder_of(found):
            with suppress(StoppedError):
                mine._wait_out(found, say, stop)
        mine._keeper.take(mine._keeper.read(), {})
        return True

    patch.setattr(ActingLease, "_become_holder", become_holder)


MUTANTS = (
    a_planner_that_acquires_before_it_releases,
    an_engine_that_ignores_the_uid,
    a_resume_without_the_lease_check,
    a_cordon_that_does_not_record,
    a_cordon_that_is_always_ours,
    a_suspend_without_the_last_list,
    a_way_back_that_forgets_a_suspend,
    a_drain_that_spares_nobody,
    a_drain_that_asks_again_and_again,
    a_switch_without_turns,
    a_stop_that_waits_for_no_volume,
    a_suspend_that_cuts_the_power,
    an_attach_that_leaves_the_old_vgpu,
    a_stream_that_catches_only_our_errors,
    a_stream_that_a_listener_may_end,
    a_list_that_may_go_back_in_time,
    a_list_of_any_kind,
    a_lease_that_is_taken_on_interrupt,
)

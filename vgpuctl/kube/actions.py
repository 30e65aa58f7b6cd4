"""The requests we send to the API server: patches of our own marks, and evictions of exactly the pods we saw."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from vgpuctl.engine.ports import Answer
from vgpuctl.kube.client import Client, NotFoundError
from vgpuctl.model.errors import ChangedMeanwhileError, SeveralBudgetsError
from vgpuctl.model.machine import shield_annotations
from vgpuctl.model.pods import Pod
from vgpuctl.model.requests import Confirm, DeletePod, Evict, PatchMachine, PatchNode, ScaleWorkload
from vgpuctl.model.workloads import scaled_annotations, scaled_labels


def patch_node(client: Client, request: PatchNode) -> Answer:
    metadata: dict[str, Any] = {"labels": dict(request.labels), "annotations": dict(request.annotations)}
    if request.version is not None:
        metadata["resourceVersion"] = request.version
    body: dict[str, Any] = {"metadata": metadata}
    if request.unschedulable is not None:
        body["spec"] = {"unschedulable": request.unschedulable or None}
    client.patch(f"/api/v1/nodes/{request.node}", body)
    return Answer()


def scale(client: Client, request: ScaleWorkload) -> Answer:
    """Write size and mark in one patch, on the version that we saw: neither can be written without the other."""
    workload = request.workload
    metadata = {
        "resourceVersion": workload.version,
        "labels": scaled_labels(request.scaled),
        "annotations": scaled_annotations(request.scaled),
    }
    body: dict[str, Any] = {"metadata": metadata}
    if request.replicas is not None:
        body["spec"] = {"replicas": request.replicas}
    client.patch(f"/apis/apps/v1/namespaces/{workload.namespace}/{workload.kind}s/{workload.name}", body)
    return Answer()


def patch_machine(client: Client, request: PatchMachine) -> Answer:
    """Patch a Machine on the version that we saw.

    A mark written at the same moment survives. A deleted Machine needs no mark.
    """
    annotations = shield_annotations(shield=request.shield)
    with suppress(NotFoundError):
        client.patch(
            request.machine.path,
            {"metadata": {"annotations": annotations, "resourceVersion": request.machine.version}},
        )
    return Answer()


def evict(client: Client, request: Evict) -> Answer:
    """Evict a pod by name and UID: a new pod of the same name is not the one that was decided about."""
    pod = request.pod
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
    if request.grace_period_s is not None:
        options["gracePeriodSeconds"] = request.grace_period_s
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }
    try:
        with suppress(NotFoundError, ChangedMeanwhileError):
            client.post(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction", body)
    except SeveralBudgetsError as error:
        names = " and ".join(request.budgets)
        raise SeveralBudgetsError(f"{pod} is under several budgets, {names}: {error.message}") from error
    return Answer()


def delete(client: Client, request: DeletePod) -> Answer:
    """Delete a pod like an eviction, but without asking its disruption budget."""
    pod = request.pod
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
    if request.grace_period_s is not None:
        options["gracePeriodSeconds"] = request.grace_period_s
    with suppress(NotFoundError, ChangedMeanwhileError):
        client.delete(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", options)
    return Answer()


def confirm(client: Client, request: Confirm) -> None:
    """Check that only the expected pods are left on the node. Without an answer there is no suspend."""
    pods = client.metadata("/api/v1/pods", fieldSelector=f"spec.nodeName={request.node}")
    late = [Pod.called(each["namespace"], each["name"]) for each in pods if each["uid"] not in request.expected]
    if late:
        raise ChangedMeanwhileError(f"{late[0]} has come to {request.node} in the meantime")

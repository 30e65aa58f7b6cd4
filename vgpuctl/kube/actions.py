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
    # Merge patch (RFC 7386): null deletes, and what is not named stays as others wrote it.
    metadata: dict[str, Any] = {"labels": dict(request.labels), "annotations": dict(request.annotations)}
    if request.version is not None:
        # Kubernetes: the server then refuses (409) a patch of a node that changed since our look (decision 0002).
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
        # Decision 0013: not by the `scale` subresource, which needs fewer rights but cannot carry the mark.
        body["spec"] = {"replicas": request.replicas}
    client.patch(f"/apis/apps/v1/namespaces/{workload.namespace}/{workload.kind}s/{workload.name}", body)
    return Answer()


def patch_machine(client: Client, request: PatchMachine) -> Answer:
    """Patch a Machine on the version that we saw.

    A mark written at the same moment survives. A deleted Machine needs no mark.
    """
    # Decision 0014: so a mark that another program sets between look and write is not taken for ours.
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
    # kubernetes#138229: a drain evicted the wrong pod after its name was reused.
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
        # Kubernetes: 404, and 409 for another UID, both mean that the pod which we saw is gone.
        with suppress(NotFoundError, ChangedMeanwhileError):
            client.post(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction", body)
    except SeveralBudgetsError as error:
        # Kubernetes: the server's sentence (500) does not say which budgets they are.
        names = " and ".join(request.budgets)
        raise SeveralBudgetsError(f"{pod} is under several budgets, {names}: {error.message}") from error
    return Answer()


def delete(client: Client, request: DeletePod) -> Answer:
    """Delete a pod like an eviction, but without asking its disruption budget."""
    pod = request.pod
    # Kubernetes: the next pod of a StatefulSet has the same name, and another UID.
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
    if request.grace_period_s is not None:
        options["gracePeriodSeconds"] = request.grace_period_s
    with suppress(NotFoundError, ChangedMeanwhileError):
        client.delete(f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}", options)
    return Answer()


def confirm(client: Client, request: Confirm) -> None:
    """Check that only the expected pods are left on the node. Without an answer there is no suspend."""
    # Decision 0015: UIDs are compared, so metadata is enough.
    pods = client.metadata("/api/v1/pods", fieldSelector=f"spec.nodeName={request.node}")
    late = [Pod.called(each["namespace"], each["name"]) for each in pods if each["uid"] not in request.expected]
    if late:
        raise ChangedMeanwhileError(f"{late[0]} has come to {request.node} in the meantime")

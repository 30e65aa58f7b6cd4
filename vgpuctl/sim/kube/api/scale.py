"""The scale subresource: a workload's replicas as an object of their own."""

from __future__ import annotations

from vgpuctl.sim.kube.api.errors import bad_request
from vgpuctl.sim.kube.api.selectors import selector_text
from vgpuctl.sim.kube.objects import Object, at, copied

_SHARED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(item: Object) -> Object:
    metadata = {key: item["metadata"][key] for key in _SHARED if key in item["metadata"]}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": at(item, "spec.replicas") or 0},
        "status": {
            "replicas": at(item, "status.replicas") or 0,
            # Measured: kube-apiserver 1.36 gives the selector as text, so that autoscalers find the pods.
            "selector": selector_text(item["spec"].get("selector")),
        },
    }


def scaled(item: Object, scale: Object) -> Object:
    """Return a copy of the workload with the replicas of the scale."""
    replicas = at(scale, "spec.replicas") or 0
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        raise bad_request("json: cannot unmarshal into Go struct field ScaleSpec.spec.replicas of type int32")
    result = copied(item)
    result["spec"]["replicas"] = replicas
    # Measured: kube-apiserver 1.36 refuses a stale scale as it refuses a stale object.
    result["metadata"]["resourceVersion"] = at(scale, "metadata.resourceVersion")
    return dict(result)

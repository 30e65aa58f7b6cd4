"""The acting Lease as an object: who holds it, for how long the holder asks to be believed, and how it is written."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from vgpuctl.kube.client import Client, NotFoundError, Object
from vgpuctl.model import bounded
from vgpuctl.model.bounded import UnreadableError

NAME = "vgpuctl"
#: A holder is waited out for no longer, whatever its Lease claims. Our own setting is refused beyond it.
LONGEST_S = 60.0
LONGEST_HOLDER = 253


def written(found: Object | None, holder: str, duration_s: float) -> Object:
    """What is there (None: nothing), renewed now by this holder. It holds for the version that was read."""
    spec = dict((found or {}).get("spec") or {})
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec |= {"holderIdentity": holder, "leaseDurationSeconds": max(1, round(duration_s)), "renewTime": now}
    if found is None or holder_of(found) != holder:
        spec |= {"acquireTime": now, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
    metadata = {"name": NAME}
    if found is not None:
        metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def holder_of(lease: Object | None) -> str:
    """The holder's identity, cut if it is longer than a server of today takes; "" if nobody holds the Lease."""
    return bounded.cut(_spec(lease).get("holderIdentity"), LONGEST_HOLDER)


def renewal_of(lease: Object) -> object:
    """Compared only: any change is a sign of life."""
    return _spec(lease).get("renewTime")


def claimed_s(lease: Object) -> float:
    """For how long its holder asks to be believed, at most LONGEST_S; 0 if it says nothing that can be read."""
    try:
        claimed = float(_spec(lease).get("leaseDurationSeconds") or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(claimed, LONGEST_S) if math.isfinite(claimed) and claimed > 0 else 0.0


def acting(client: Client, namespace: str) -> str:
    """For people: who holds it and, by the wall clock, renews it; "" for nobody. No write depends on this."""
    try:
        found = client.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{NAME}")
        renewed = bounded.time(renewal_of(found), "spec.renewTime")
    except (NotFoundError, UnreadableError):
        return ""
    silent_s = (datetime.now(UTC) - renewed).total_seconds()
    return holder_of(found) if silent_s <= claimed_s(found) else ""


def _spec(lease: Object | None) -> Object:
    found = (lease or {}).get("spec")
    return found if isinstance(found, dict) else {}

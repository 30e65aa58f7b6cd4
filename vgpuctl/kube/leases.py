"""The acting Lease as an object: its holder, the time the holder claims, and how it is written."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.kube.client import Client, NotFoundError, Object
from vgpuctl.model.errors import PassingError

NAME = "vgpuctl"
#: The longest wait for a holder, whatever its Lease claims. A longer setting of our own is refused.
#: Decision 0004: a Lease of an hour, left by a crash or a hostile hand, would lock all instances out.
LONGEST_S = 60.0
LONGEST_HOLDER = 253


def lease_body(found: Object | None, holder: str, duration_s: float) -> Object:
    """Return the found Lease (None: a new one), renewed now by this holder, for the version that was read."""
    spec = dict((found or {}).get("spec") or {})
    # Kubernetes: a MicroTime has six digits after the second.
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    # Kubernetes: leaseDurationSeconds is a whole number above 0.
    spec |= {"holderIdentity": holder, "leaseDurationSeconds": max(1, round(duration_s)), "renewTime": now}
    if found is None or holder_of(found) != holder:
        spec |= {"acquireTime": now, "leaseTransitions": _transitions(spec) + 1}
    metadata = {"name": NAME}
    if found is not None:
        # Kubernetes: of two instances that write over one version, the server refuses the second (409).
        metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def lease_in(answer: Object) -> Object:
    """Return the answer if it is the Lease. Replies mixed up on their way have no holder, and would pass for free."""
    meta, spec = answer.get("metadata"), answer.get("spec")
    if answer.get("kind") != "Lease" or not isinstance(meta, dict) or not isinstance(spec, dict | None):
        raise _garbled()
    # The version is that which the next write replaces.
    if meta.get("name") != NAME or not isinstance(meta.get("resourceVersion"), str):
        raise _garbled()
    return answer


def _garbled() -> PassingError:
    return PassingError("Kubernetes answers, but not with the Lease that was asked for.")


def holder_of(lease: Object | None) -> str:
    """Return the holder's identity, cut to the length that today's servers accept; "" if the Lease is free."""
    return bounded.cut(_spec(lease).get("holderIdentity"), LONGEST_HOLDER)


def renewal_of(lease: Object | None) -> object:
    """Return the renewal mark. It is only compared: any change is a sign of life."""
    return _spec(lease).get("renewTime")


def claimed_s(lease: Object) -> float:
    """Return how long the holder claims the Lease, at most LONGEST_S; 0 if that cannot be read."""
    try:
        claimed = float(_spec(lease).get("leaseDurationSeconds") or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(claimed, LONGEST_S) if math.isfinite(claimed) and claimed > 0 else 0.0


def acting(client: Client, namespace: str) -> str:
    """Return the holder that renews the Lease by the wall clock, or "". For people only: no write depends on it."""
    try:
        found = client.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{NAME}")
        renewed = bounded.time(renewal_of(found), "spec.renewTime")
    except (NotFoundError, UnreadableError):
        return ""
    # Decision 0011: here clocks are compared, for a word that people read. For acting they never are (0004).
    silent_s = (datetime.now(UTC) - renewed).total_seconds()
    return holder_of(found) if silent_s <= claimed_s(found) else ""


def _transitions(spec: Object) -> int:
    """Return how often the holder has changed, for people only: 0 if that cannot be read."""
    try:
        return bounded.whole(spec.get("leaseTransitions"), "spec.leaseTransitions")
    except UnreadableError:
        return 0


def _spec(lease: Object | None) -> Object:
    found = (lease or {}).get("spec")
    return found if isinstance(found, dict) else {}

"""A Lease as an object: its holder, the time the holder claims, an ask, and how it is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.basics.uptime import uptime_s
from vgpuctl.kube.client import Client, NotFoundError, Object
from vgpuctl.model.errors import PassingError

#: Only its holder writes to workers.
ACTING = "vgpuctl"
#: Only its holder acts by timetables.
LEADING = "vgpuctl-daemon"
#: On the acting Lease. Decision 0023: a daemon says that it gives way, and a person's command asks it to.
GIVES_WAY, ASKED_BY = "vgpuctl.io/gives-way", "vgpuctl.io/asked-by"
#: The longest wait for a holder, whatever its Lease claims. A longer setting of our own is refused.
#: Decision 0004: a Lease of an hour, left by a crash or a hostile hand, would lock all instances out.
LONGEST_S = 60.0
LONGEST_HOLDER = 253

#: What a write keeps of the metadata. Measured, kube-apiserver 1.36: a PUT to a Lease that was deleted creates it.
#: If the PUT has the uid of the deleted one, it is refused (409).
_KEPT = {"name", "uid", "resourceVersion", "labels"}
_OF_ONE_OBJECT = {"uid", "resourceVersion"}

#: A holder and its renewal mark.
Signs = tuple[str, object]
#: Annotations to write; None takes one off.
Marks = Mapping[str, str | None]


def leases_path(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def new_lease(name: str) -> Object:
    """Return a Lease that no instance has held yet."""
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}}


def lease_body(found: Object, holder: str, duration_s: float, marks: Marks) -> Object:
    """Return the found Lease, renewed now by this holder, for the version that was read."""
    spec = dict(_spec(found))
    # Kubernetes: a MicroTime has six digits after the second.
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    # Kubernetes: leaseDurationSeconds is a whole number above 0.
    spec |= {"holderIdentity": holder, "leaseDurationSeconds": max(1, round(duration_s)), "renewTime": now}
    if holder_of(found) != holder:
        spec |= {"acquireTime": now, "leaseTransitions": _transitions(spec) + 1}
    return marked(found, marks) | {"spec": spec}


def marked(found: Object, marks: Marks) -> Object:
    """Return the found Lease with these marks, and otherwise as it is, for the version that was read."""
    # Kubernetes: a PUT takes off each label and annotation that it does not have.
    annotations = {key: value for key, value in {**_annotations(found), **marks}.items() if value is not None}
    # Kubernetes: of two instances that write over one version, the server refuses the second (409).
    metadata = {key: value for key, value in found["metadata"].items() if key in _KEPT}
    if annotations:
        metadata |= {"annotations": annotations}
    return {**new_lease(""), "metadata": metadata, "spec": dict(_spec(found))}


def put_back(lease: Object) -> Object:
    """Return the Lease for a POST, after it was deleted."""
    return {**lease, "metadata": {key: value for key, value in lease["metadata"].items() if key not in _OF_ONE_OBJECT}}


def lease_in(answer: Object, name: str) -> Object:
    """Return the answer if it is this Lease. Replies mixed up on their way have no holder, and would pass for free."""
    meta, spec = answer.get("metadata"), answer.get("spec")
    if answer.get("kind") != "Lease" or not isinstance(meta, dict) or not isinstance(spec, dict | None):
        raise _garbled()
    # The version is that which the next write replaces.
    if meta.get("name") != name or not isinstance(meta.get("resourceVersion"), str):
        raise _garbled()
    return answer


def _garbled() -> PassingError:
    return PassingError("Kubernetes answers, but not with the Lease that was asked for.")


def holder_of(lease: Object | None) -> str:
    """Return the holder's identity, cut to the length that today's servers accept; "" if the Lease is free."""
    return bounded.cut(_spec(lease).get("holderIdentity"), LONGEST_HOLDER)


def signs_of(lease: Object | None) -> Signs:
    """Return the holder and its renewal mark. They are only compared: any change is a sign of life."""
    return holder_of(lease), _spec(lease).get("renewTime")


class Sighting:
    """What a Lease last showed, and since when by our own clock. All that read one Lease in one process share it."""

    def __init__(self) -> None:
        self._last: tuple[Signs, float] = ("", None), -math.inf

    def since_s(self, lease: Object | None) -> float:
        """Note what the Lease shows now, and return since when it has shown that."""
        # Decision 0004: any change is a sign of life. Two looks with the same mark have no renewal between them.
        signs, since_s = self._last
        if signs != signs_of(lease):
            since_s = uptime_s()
            self._last = signs_of(lease), since_s
        return since_s


def claimed_s(lease: Object | None) -> float:
    """Return how long the holder claims the Lease, at most LONGEST_S; 0 if that cannot be read."""
    try:
        claimed = float(_spec(lease).get("leaseDurationSeconds") or 0)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(claimed, LONGEST_S) if math.isfinite(claimed) and claimed > 0 else 0.0


def gives_way(lease: Object | None) -> bool:
    """Return whether the holder releases the Lease when it is asked."""
    return bool(holder_of(lease)) and _annotations(lease).get(GIVES_WAY) == "true"


def asked_by(lease: Object | None) -> str:
    """Return the command that asks for the Lease, or ""."""
    return in_one_line(_annotations(lease).get(ASKED_BY, ""))


def in_one_line(ask: str) -> str:
    """Return the ask as it is shown and compared. An annotation may hold any text of any program."""
    return bounded.cut(" ".join(ask.split()))


def acting(client: Client, namespace: str) -> str:
    """Return the instance that writes to workers now, or ""."""
    return _renewing(client, namespace, ACTING)


def leader(client: Client, namespace: str) -> str:
    """Return the daemon that leads now, or ""."""
    return _renewing(client, namespace, LEADING)


def _renewing(client: Client, namespace: str, name: str) -> str:
    """Return the holder that renews the Lease by the wall clock, or "". For people only: no write depends on it."""
    try:
        found = client.get(f"{leases_path(namespace)}/{name}")
        renewed = bounded.time(_spec(found).get("renewTime"), "spec.renewTime")
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


def _annotations(lease: Object | None) -> dict[str, str]:
    metadata = (lease or {}).get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, dict) else {}

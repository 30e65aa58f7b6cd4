"""Events have two forms, core and events.k8s.io. The core form is stored."""

from __future__ import annotations

from vgpuctl.sim.kube.api.kinds import Kind
from vgpuctl.sim.kube.objects import Object

# Fields of events.k8s.io, and the same fields of the core form.
_RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
GROUP = "events.k8s.io"
_BACK = {core: newer for newer, core in _RENAMED.items()}


def shown(kind: Kind, item: Object) -> Object:
    """Return the stored event in the form of the requested group."""
    if kind.group != GROUP:
        return item
    # Measured: kube-apiserver 1.36 shows an event that was made in one group in the other as well.
    return {_BACK.get(key, key): value for key, value in item.items()} | {"apiVersion": kind.api_version}


def stored(kind: Kind, item: Object) -> Object:
    if kind.group != GROUP:
        return item
    return {_RENAMED.get(key, key): value for key, value in item.items()} | {"apiVersion": "v1"}


def causes(kind: Kind, item: Object) -> list[tuple[str, str, str]]:
    """Refuse an event that is in another namespace than its object."""
    involved = str((item.get("involvedObject") or {}).get("namespace") or "")
    # Measured: kube-apiserver 1.36 takes an event about an object without a namespace in `default` alone.
    if kind.plural != "events" or item["metadata"].get("namespace") == (involved or "default"):
        return []
    message = f'Invalid value: "{involved}": does not match event.namespace'
    return [("involvedObject.namespace", "FieldValueInvalid", message)]

"""Lists and watches: one copy of nodes, pods, leases and budgets, kept true by the API server's own events."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from vgpuctl.kube import views, workloads
from vgpuctl.kube.client import Client, NotAllowedError, NotFoundError
from vgpuctl.kube.views import Renewal, SeenNode
from vgpuctl.model.errors import PassingError, VgpuctlError
from vgpuctl.model.pods import Budget, Disk, Pod
from vgpuctl.model.workloads import Workload

WATCH_S = 240
AGAIN_AFTER_S = 1.0
PAGE = "500"


class Kind(NamedTuple):
    """Where objects of a kind are listed, and what we keep of each."""

    path: str
    view: Callable[[Any], Any]


KINDS = {
    "nodes": Kind("/api/v1/nodes", views.node),
    "pods": Kind("/api/v1/pods", views.pod),
    "leases": Kind("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", views.renewal),
    "budgets": Kind("/apis/policy/v1/poddisruptionbudgets", views.budget),
}
#: What only a drain needs to know; what stands here alone it does without where it is denied.
DRAIN_KINDS = {
    "pods": Kind("/api/v1/pods", partial(views.pod, with_needs=True)),
    "daemonsets": Kind("/apis/apps/v1/daemonsets", views.daemon_set),
    "jobs": Kind("/apis/batch/v1/jobs", views.job),
    "persistentvolumeclaims": Kind("/api/v1/persistentvolumeclaims", views.claim),
    "volumeattachments": Kind("/apis/storage.k8s.io/v1/volumeattachments", views.attachment),
}


#: What only timetables that scale workloads need to know.
SCALE_KINDS = {
    "deployments": Kind("/apis/apps/v1/deployments", workloads.deployment),
    "statefulsets": Kind("/apis/apps/v1/statefulsets", workloads.stateful_set),
    "horizontalpodautoscalers": Kind("/apis/autoscaling/v2/horizontalpodautoscalers", workloads.autoscaler),
}


class Shelf:
    """All objects of one kind, as views of ours. One thread writes; readers take a copy under the lock."""

    def __init__(self, client: Client, kind: Kind, on_change: Callable[[], None]) -> None:
        self._client, self._path, self._view, self._on_change = client, kind.path, kind.view, on_change
        self._objects: dict[str, Any] = {}
        self._version = ""
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.heard = False

    def objects(self) -> list[Any]:
        with self._lock:
            return list(self._objects.values())

    def fill(self) -> None:
        """The whole list, page by page; raises where the server cannot be asked."""
        found: dict[str, Any] = {}
        query = {"limit": PAGE}
        while True:
            page = self._client.get(self._path, **query)
            found.update({item["metadata"]["uid"]: self._view(item) for item in page.get("items") or ()})
            token = page["metadata"].get("continue")
            if not token:
                break
            query["continue"] = token
        with self._lock:
            self._objects = found
        self._version = page["metadata"]["resourceVersion"]
        self.heard = True

    def follow(self) -> None:
        name = f"watch-{self._path.rsplit('/', 1)[-1]}"
        threading.Thread(target=self._listen, name=name, daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def _listen(self) -> None:
        while not self._closed.is_set():
            try:
                if not self.heard:
                    self.fill()
                    self._on_change()
                self._watch()
            except VgpuctlError as error:
                self.heard = False
                self._on_change()
                self._closed.wait(max(AGAIN_AFTER_S, error.after_s))

    def _watch(self) -> None:
        for event in _events(self._client.watch(self._path, self._version, WATCH_S)):
            if event["type"] == "ERROR":
                raise PassingError("the watch has ended; the list must be read anew")
            self._take(event)
            if event["type"] != "BOOKMARK":
                self._on_change()
            if self._closed.is_set():
                return

    def _take(self, event: Any) -> None:
        meta = event["object"]["metadata"]
        self._version = meta["resourceVersion"]
        with self._lock:
            if event["type"] == "DELETED":
                self._objects.pop(meta["uid"], None)
            elif event["type"] != "BOOKMARK":
                self._objects[meta["uid"]] = self._view(event["object"])


def _events(response: Any) -> Iterator[Any]:
    """The lines of a watch; a connection that breaks is an error, one that ends in good order is not."""
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    rest = b""
    try:
        for chunk in response.stream(amt=None, decode_content=True):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (json.loads(line) for line in lines if line)
    except (HTTPError, OSError, ValueError) as error:
        raise PassingError(f"the watch broke: {type(error).__name__}") from error
    finally:
        response.release_conn()


class KubernetesStream:
    """The four shelves together, and those for drains and for scaling as far as we may see them."""

    def __init__(
        self, client: Client, on_change: Callable[[], None], *, drains: bool = False, scales: bool = False
    ) -> None:
        kinds = KINDS | (DRAIN_KINDS if drains else {}) | (SCALE_KINDS if scales else {})
        self.shelves = {name: Shelf(client, kind, on_change) for name, kind in kinds.items()}
        self._denied: tuple[str, ...] = ()

    def fill(self) -> None:
        """In this order: a pod's DaemonSet, listed after the pod, is missing only if it is gone. What was told before
        another failed is not asked again: its watch goes on from there."""
        for name, shelf in tuple(self.shelves.items()):
            try:
                if not shelf.heard:
                    shelf.fill()
            except (NotAllowedError, NotFoundError):
                if name in KINDS:
                    raise
                self._denied += (name,)
                del self.shelves[name]

    def follow(self) -> None:
        for shelf in self.shelves.values():
            shelf.follow()

    def close(self) -> None:
        for shelf in self.shelves.values():
            shelf.close()

    @property
    def heard(self) -> bool:
        return all(shelf.heard for shelf in self.shelves.values())

    def nodes(self) -> list[SeenNode]:
        return self.shelves["nodes"].objects()

    def renewals(self) -> list[Renewal]:
        return self.shelves["leases"].objects()

    def pods(self) -> list[Pod]:
        return self.shelves["pods"].objects()

    def budgets(self) -> list[Budget]:
        return self.shelves["budgets"].objects()

    def unseen(self) -> tuple[str, ...]:
        return self._denied

    def daemon_sets(self) -> frozenset[str] | None:
        """None where they are not known."""
        shelf = self.shelves.get("daemonsets")
        return frozenset(shelf.objects()) if shelf else None

    def counting_jobs(self) -> frozenset[str]:
        """Those that count an eviction as a failure."""
        shelf = self.shelves.get("jobs")
        return frozenset(name for name, ignores in shelf.objects() if not ignores) if shelf else frozenset()

    def workloads(self) -> dict[str, Workload]:
        """By their keys, with what is known of who else decides their size."""
        found = [each for kind in ("deployments", "statefulsets") for each in self._objects_of(kind)]
        return {each.key: each for each in workloads.decided(found, self._objects_of("horizontalpodautoscalers"))}

    def _objects_of(self, kind: str) -> list[Any]:
        return self.shelves[kind].objects() if kind in self.shelves else []

    def disks(self) -> dict[str, list[Disk]] | None:
        """What hangs on each node; None where that, or to whom it belongs, is not known."""
        if "volumeattachments" not in self.shelves or "persistentvolumeclaims" not in self.shelves:
            return None
        return disks_of(self.shelves["volumeattachments"].objects(), self.shelves["persistentvolumeclaims"].objects())


def disks_of(attachments: list[tuple[str, str]], claims: list[tuple[str, str]]) -> dict[str, list[Disk]]:
    """By node, in an order that stays."""
    bound, found = dict(claims), dict[str, list[Disk]]()
    for node, volume in sorted(attachments):
        found.setdefault(node, []).append(Disk(volume, bound.get(volume, "")))
    return found

"""Binds claims at once, and attaches a claim's disk to the node of its pod until that pod is gone."""

from __future__ import annotations

import hashlib
from functools import partial

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, EventSource
from vgpuctl.sim.kube.controllers.queue import Queue
from vgpuctl.sim.kube.objects import Object, at, is_finished, name_of, namespace_of, uid_of
from vgpuctl.sim.kube.store import Change, Key, key_of

#: vSphere CSI: the name of its driver.
DRIVER = "csi.vsphere.vmware.com"
ATTACH_S = DETACH_S = 1.0
SHARED_MODES = ("ReadWriteMany", "ReadOnlyMany")
_EVENT_SOURCE = EventSource("attachdetach-controller")


class Volumes:
    """Binds claims, attaches and detaches disks. A disk is attached to one node at a time, also while that
    node sleeps; a shared volume to all nodes of its pods.
    """

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._store = context.store
        self._users: dict[str, dict[Key, str]] = {}
        self._claims = Queue(context.clock, self._bind)
        self._disks = Queue(context.clock, self._reconcile)
        context.store.subscribe(["persistentvolumeclaims"], self._claim_changed)
        context.store.subscribe(["pods"], self._pod_changed)
        context.store.subscribe(["volumeattachments"], self._attachment_changed)

    def _claim_changed(self, change: Change) -> None:
        if change.type == "ADDED":
            self._claims.add(key_of(change.object))

    def _bind(self, key: Key) -> None:
        def bind(claim: Object) -> None:
            # No PersistentVolume is simulated: the claim names its disk, and no object stands behind that name.
            claim["spec"].setdefault("volumeName", f"pvc-{uid_of(claim)}")
            capacity = at(claim, "spec.resources.requests") or {}
            claim["status"] = {"phase": "Bound", "accessModes": claim["spec"].get("accessModes") or []}
            claim["status"]["capacity"] = capacity

        claim = self._store.edit("persistentvolumeclaims", *key, bind)
        if claim is not None:
            for pod in self._store.sorted("pods", key[0]):
                self._use(pod)

    def _pod_changed(self, change: Change) -> None:
        pod = change.object
        # Kubernetes: a pod that has ended uses its volumes no longer.
        if pod["spec"].get("volumes") and (change.type == "DELETED" or is_finished(pod)):
            self._release(key_of(pod))
        else:
            self._use(pod)

    def _use(self, pod: Object) -> None:
        node = pod["spec"].get("nodeName")
        for disk in disks_of(self._context, pod) if node and not is_finished(pod) else ():
            self._users.setdefault(disk, {})[key_of(pod)] = node
            self._disks.add(("", disk))

    def _release(self, pod: Key) -> None:
        """Release the pod's disks, also if its claims were deleted meanwhile."""
        for disk, users in self._users.items():
            if users.pop(pod, None):
                self._disks.add(("", disk))

    def _attachment_changed(self, change: Change) -> None:
        disk = at(change.object, "spec.source.persistentVolumeName")
        if change.type == "DELETED" and disk:
            self._disks.add(("", disk))

    def _reconcile(self, key: Key) -> None:
        disk = key[1]
        wanted = set(self._users.get(disk, {}).values())
        attachments = [item for item in self._store.all("volumeattachments") if _is_for(item, disk)]
        for item in attachments:
            # Kubernetes: a suspended VM keeps its disks, and blocks them elsewhere.
            # So a VM may sleep only when its attachments are gone.
            if item["spec"]["nodeName"] not in wanted:
                self._context.clock.after(DETACH_S, partial(self._detach, disk, name_of(item)))
        attached = {item["spec"]["nodeName"] for item in attachments}
        if self._is_shared(disk):
            for node in sorted(wanted - attached):
                self._attach(disk, node)
        elif not attachments and wanted:
            self._attach(disk, min(wanted))
        elif wanted - attached:
            self._report_multi_attach(disk, attached)

    def _is_shared(self, disk: str) -> bool:
        """Return True for a volume that several nodes may use at once."""
        # Kubernetes: isMultiAttachForbidden in the attach/detach controller.
        specs = [claim["spec"] for claim in self._store.all("persistentvolumeclaims")]
        modes = [mode for spec in specs if spec.get("volumeName") == disk for mode in spec.get("accessModes") or []]
        return any(mode in SHARED_MODES for mode in modes)

    def _attach(self, disk: str, node: str) -> None:
        # Kubernetes: the attachment's name is a hash, so a volume and a node have one attachment only.
        digest = hashlib.sha256(f"{disk}{DRIVER}{node}".encode()).hexdigest()
        item: Object = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": f"csi-{digest}"},
        }
        source = {"persistentVolumeName": disk}
        item |= {"spec": {"attacher": DRIVER, "nodeName": node, "source": source}, "status": {"attached": False}}
        self._context.create("volumeattachments", item)
        self._context.clock.after(ATTACH_S, lambda: self._attached(name_of(item)))

    def _attached(self, name: str) -> None:
        self._store.edit("volumeattachments", "", name, lambda item: item.update(status={"attached": True}))

    def _detach(self, disk: str, name: str) -> None:
        item = self._store.get("volumeattachments", "", name)
        if item is not None and item["spec"]["nodeName"] not in self._users.get(disk, {}).values():
            self._context.delete("volumeattachments", item)

    def _report_multi_attach(self, disk: str, nodes: set[str]) -> None:
        for key, node in self._users[disk].items():
            pod = self._store.get("pods", *key)
            if pod is not None and node not in nodes:
                message = f'Multi-Attach error for volume "{disk}" Volume is already exclusively attached to one node'
                message += " and can't be attached to another"
                self._context.record_event(pod, _EVENT_SOURCE, "FailedAttachVolume", message, warning=True)


def disks_of(context: ControllerContext, pod: Object) -> list[str]:
    """Return the names of the disks behind the pod's bound claims."""
    names = [at(volume, "persistentVolumeClaim.claimName") for volume in pod["spec"].get("volumes") or []]
    claims = [context.store.get("persistentvolumeclaims", namespace_of(pod), name) for name in names if name]
    disks = [at(claim, "spec.volumeName") for claim in claims if claim is not None]
    return [disk for disk in disks if disk]


def are_attached(context: ControllerContext, pod: Object) -> bool:
    """Return True if every volume of the pod is attached to its node."""
    wanted = [at(volume, "persistentVolumeClaim.claimName") for volume in pod["spec"].get("volumes") or []]
    # A claim that is not bound yet has no disk.
    disks = disks_of(context, pod)
    if len(disks) < len([name for name in wanted if name]):
        return False
    node = pod["spec"]["nodeName"]
    attached = [item for item in context.store.all("volumeattachments") if item["spec"]["nodeName"] == node]
    ready = {at(item, "spec.source.persistentVolumeName") for item in attached if at(item, "status.attached")}
    return ready >= set(disks)


def _is_for(item: Object, disk: str) -> bool:
    return bool(at(item, "spec.source.persistentVolumeName") == disk)

"""Notices about objects of Kubernetes: to the owners of pods that leave, and on the nodes of a shift at risk."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that a notice is about: the owner of the pods, a pod that has no owner, or a node."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def node(cls, name: str) -> Subject:
        # kubelet: its own Events name the node as its UID, and `kubectl describe node` finds them by that.
        return cls("v1", "Node", "", name, name)


@dataclass(frozen=True, slots=True)
class Notice:
    """`reason`: one word for programs. `warning`: something needs a person."""

    subject: Subject
    message: str
    reason: str = "WorkerLeaves"
    warning: bool = False

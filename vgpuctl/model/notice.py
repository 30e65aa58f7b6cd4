"""What the owners of pods are told before these leave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that is told about: what owns the pods, or a pod that nothing owns."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Notice:
    subject: Subject
    message: str

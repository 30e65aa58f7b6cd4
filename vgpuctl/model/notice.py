"""The notices that the owners of pods get before these pods leave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that a notice is about: the owner of the pods, or a pod that has no owner."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Notice:
    subject: Subject
    message: str

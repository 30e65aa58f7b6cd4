"""Notices become Events where the API server takes them: beside their object, or in `default` for a node."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.support.clients import Kubernetes
from vgpuctl.kube import notices
from vgpuctl.model.notice import Notice, Subject
from vgpuctl.sim.kube.objects import Object, name_of, namespace_of
from vgpuctl.sim.world import World

POD = Subject("v1", "Pod", "kube-system", "web", "uid-web")


def posted(*some: Notice) -> list[Object]:
    world = World()
    client = Kubernetes(world, lambda *_: None, lambda _, answer: answer())
    before = {name_of(event) for event in world.kubernetes.store.all("events")}
    notices.post(client, some)
    for thread in threading.enumerate():
        if thread.name == "notices":
            thread.join(10)
    return [event for event in world.kubernetes.store.all("events") if name_of(event) not in before]


@pytest.mark.parametrize(
    ("notice", "namespace", "said"),
    [
        (Notice(POD, "it leaves"), "kube-system", {"type": "Normal", "reason": "WorkerLeaves"}),
        (
            Notice(Subject.node("worker-1"), "held up", "ShiftAtRisk", warning=True),
            "default",
            {"type": "Warning", "reason": "ShiftAtRisk"},
        ),
    ],
    ids=["a pod", "a node"],
)
def test_a_notice_is_an_event_in_the_namespace_of_its_object(
    notice: Notice, namespace: str, said: dict[str, Any]
) -> None:
    [event] = posted(notice)
    about = event["involvedObject"]
    assert (namespace_of(event), about["kind"], about["name"], about["uid"]) == (
        namespace,
        notice.subject.kind,
        notice.subject.name,
        notice.subject.uid,
    )
    assert {key: event[key] for key in said} == said


def test_after_a_refusal_nothing_more_is_sent() -> None:
    nowhere = Subject("v1", "Pod", "no-such-namespace", "web", "uid-web")
    assert posted(Notice(nowhere, "it leaves"), Notice(POD, "it leaves")) == []

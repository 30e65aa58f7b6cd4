"""Workloads as our stream and patch meet them: scaled to zero and back, and who else decides their size."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.support.peers.clusters import STRATEGIC, Cluster, deployment
from vgpuctl.kube import actions, views
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client
from vgpuctl.kube.stream import KubernetesStream
from vgpuctl.model.errors import ChangedMeanwhileError
from vgpuctl.model.requests import ScaleWorkload
from vgpuctl.model.workloads import Scaled, Workload

MARK = Scaled(shift="night", timetable="day-night", since="2026-11-18T20:00:00Z", replicas=2)


class Followed:
    """The product's own stream over the cluster, looking at one workload."""

    def __init__(self, cluster: Cluster) -> None:
        self._key, self._changed = f"{cluster.namespace}/deployment/gateway", threading.Event()
        self.client = Client(KubernetesSettings(kubeconfig=str(cluster.kubeconfig)))
        self._stream = KubernetesStream(self.client, self._changed.set, scales=True)
        self._stream.fill()
        self._stream.follow()

    def workload(self) -> Workload:
        return self._stream.workloads()[self._key]

    def until(self, found: Callable[[Workload], bool]) -> Workload:
        while not found(self.workload()):
            assert self._changed.wait(20), self.workload()
            self._changed.clear()
        return self.workload()

    def scale(self, workload: Workload, replicas: int | None, scaled: Scaled | None) -> None:
        actions.scale(self.client, ScaleWorkload(workload=workload, replicas=replicas, scaled=scaled))

    def settled(self) -> Workload:
        """Its controller writes its status for a while: until nothing has been heard of it for a moment."""
        while self._changed.wait(1.0):
            self._changed.clear()
        return self.workload()

    def close(self) -> None:
        self._stream.close()


@pytest.fixture
def followed(cluster: Cluster) -> Iterator[Followed]:
    cluster.create(cluster.path("deployments", group="apps"), deployment("gateway", 2))
    stream = Followed(cluster)
    yield stream
    stream.close()


def test_size_and_mark_come_and_go_together(cluster: Cluster, followed: Followed) -> None:
    before = followed.settled()
    assert (before.replicas, before.scaled, before.decided_by) == (2, None, "")
    followed.scale(before, 0, MARK)
    asleep = followed.until(lambda workload: workload.scaled is not None)
    assert (asleep.replicas, asleep.scaled) == (0, MARK)
    cluster.until(lambda: not cluster.pods("app%3Dgateway"), what="its pods are gone")
    followed.scale(followed.settled(), 2, None)
    assert followed.until(lambda workload: workload.scaled is None).replicas == 2


def test_who_was_quicker_is_not_overwritten(cluster: Cluster, followed: Followed) -> None:
    before = followed.settled()
    cluster.patch(cluster.path("deployments", "gateway", "apps"), {"spec": {"replicas": 5}})
    with pytest.raises(ChangedMeanwhileError):
        followed.scale(before, 0, MARK)
    assert followed.until(lambda workload: workload.replicas == 5).scaled is None


def test_its_pods_are_told_by_owner_and_selector(cluster: Cluster, followed: Followed) -> None:
    cluster.until(lambda: len(cluster.pods("app%3Dgateway")) == 2, what="its pods are there")
    assert all(followed.workload().has(views.pod(raw)) for raw in cluster.pods("app%3Dgateway"))


def test_the_servers_books_tell_who_declares_its_replicas(cluster: Cluster, followed: Followed) -> None:
    path = f"{cluster.path('deployments', 'gateway', 'apps')}?fieldManager=argocd-controller"
    cluster.http("PATCH", path, {"spec": {"replicas": 3}}, STRATEGIC).ok()
    assert followed.until(lambda workload: workload.replicas == 3).decided_by == "Argo CD sets its replicas"
    followed.scale(followed.settled(), 0, MARK)
    assert followed.until(lambda workload: workload.sleeps).decided_by == "", "we wrote it since"


def test_an_autoscaler_decides_the_size_of_its_target(cluster: Cluster, followed: Followed) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gateway"}
    body = {"metadata": {"name": "by-load"}, "spec": {"scaleTargetRef": target, "maxReplicas": 8}}
    path = f"/apis/autoscaling/v2/namespaces/{cluster.namespace}/horizontalpodautoscalers"
    cluster.create(path, {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **body})
    decided = followed.until(lambda workload: bool(workload.decided_by))
    assert decided.decided_by == "the HorizontalPodAutoscaler by-load decides its size"
    cluster.http("DELETE", f"{path}/by-load").ok()
    followed.until(lambda workload: not workload.decided_by)

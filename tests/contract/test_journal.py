"""The journal as we write it, in our Kubernetes and in a real one."""

from __future__ import annotations

from dataclasses import replace

from tests.support.past import night
from tests.support.peers.clusters import Cluster
from tests.support.peers.processes import until
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client
from vgpuctl.kube.journal import KEPT, Journal


def journal(cluster: Cluster) -> Journal:
    client = Client(KubernetesSettings(kubeconfig=str(cluster.kubeconfig)))
    return Journal(client, cluster.namespace, "laptop/1/aa", "ann@laptop")


def test_it_is_written_numbered_rewritten_read_and_pruned(cluster: Cluster) -> None:
    for _ in range(KEPT + 1):
        some = journal(cluster)
        some.keep(replace(night(), outcome="running"))
        assert some.close(night()) == ""
    found = journal(cluster).entries()
    assert [entry.number for entry in found] == list(range(2, KEPT + 2))
    assert found[-1] == night(number=KEPT + 1)


def test_one_that_was_deleted_meanwhile_is_written_again(cluster: Cluster) -> None:
    some = journal(cluster)
    some.keep(replace(night(), outcome="running"))
    until(lambda: journal(cluster).entries())
    cluster.http("DELETE", cluster.path("configmaps/vgpuctl-history-1")).ok()
    assert some.close(night()) == ""
    assert journal(cluster).entries() == [night(number=1)]


def test_the_names_alone_are_asked_for(cluster: Cluster) -> None:
    """A real server leaves out what is in the objects; ours sends all, and says so by the kind of its list."""
    journal(cluster).close(night())
    client = Client(KubernetesSettings(kubeconfig=str(cluster.kubeconfig)))
    found = client.metadata(cluster.path("configmaps"), labelSelector="vgpuctl.io/kind=history")
    assert [each["name"] for each in found] == ["vgpuctl-history-1"]

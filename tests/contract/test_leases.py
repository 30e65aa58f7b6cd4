"""The Leases of several instances on both Kubernetes: a PUT after a deletion, giving way, and leading."""

from __future__ import annotations

import threading

import pytest

from tests.support.peers.clusters import Cluster
from tests.support.peers.processes import until
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client
from vgpuctl.kube.leadership import Leadership
from vgpuctl.kube.lease import ActingLease
from vgpuctl.kube.leases import ACTING, ASKED_BY, GIVES_WAY, LEADING, acting, leader

RBAC = "rbac.authorization.k8s.io"
#: A Lease claims whole seconds, and a real server has no other clock.
DURATION_S = 1.0


def leases(cluster: Cluster, name: str = "") -> str:
    return cluster.path("leases", name, group="coordination.k8s.io")


def client(cluster: Cluster) -> Client:
    return Client(KubernetesSettings(kubeconfig=str(cluster.kubeconfig), namespace=cluster.namespace))


def test_a_put_makes_a_deleted_lease_again_unless_it_has_its_uid(cluster: Cluster) -> None:
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2026-01-05T00:00:00.000000Z"}
    lease = cluster.create(leases(cluster), {"metadata": {"name": "acting"}, "spec": spec})
    cluster.http("DELETE", leases(cluster, "acting")).ok()
    refusal = cluster.http("PUT", leases(cluster, "acting"), lease).refused(409, "Conflict")
    uid = lease["metadata"]["uid"]
    assert f"Precondition failed: UID in precondition: {uid}, UID in object meta: " in refusal["message"]
    version = {"name": "acting", "resourceVersion": lease["metadata"]["resourceVersion"]}
    made = cluster.http("PUT", leases(cluster, "acting"), {"metadata": version, "spec": spec})
    assert made.code == 201, "a version alone is no obstacle"
    assert made.ok()["metadata"]["uid"] != uid
    cluster.http("PUT", leases(cluster, "other"), {"metadata": version}).refused(400, "BadRequest")


def test_a_put_that_makes_a_lease_needs_the_right_to_create(cluster: Cluster) -> None:
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}
    cluster.create(cluster.path("roles", group=RBAC), {"metadata": {"name": "updater"}, "rules": [rule]})
    subject = {"kind": "User", "name": "ann", "apiGroup": RBAC}
    binding = {"metadata": {"name": "updater"}, "roleRef": {"kind": "Role", "name": "updater", "apiGroup": RBAC}}
    cluster.create(cluster.path("rolebindings", group=RBAC), binding | {"subjects": [subject]})
    allowed = ("auth", "can-i", "update", "leases", "--as=ann", "-n", cluster.namespace)
    until(lambda: cluster.kubectl(*allowed).stdout.strip() == "yes", 10, what="the role counts")
    body = {"metadata": {"name": "made"}, "spec": {"holderIdentity": "ann"}}
    put = cluster.http("PUT", leases(cluster, "made"), body, **{"Impersonate-User": "ann"})
    assert 'cannot create resource "leases"' in put.refused(403, "Forbidden")["message"]
    made = cluster.http("PUT", leases(cluster, "made"), body).ok()
    cluster.http("PUT", leases(cluster, "made"), made, **{"Impersonate-User": "ann"}).ok()


@pytest.mark.parametrize("version", [{}, {"resourceVersion": ""}, {"resourceVersion": "0"}], ids=["none", "empty", "0"])
def test_an_update_without_the_version_that_it_replaces_is_refused(cluster: Cluster, version: dict[str, str]) -> None:
    """So no instance can take a Lease blindly."""
    cluster.create(leases(cluster), {"metadata": {"name": "acting"}})
    body = {"metadata": {"name": "acting"} | version}
    refusal = cluster.http("PUT", leases(cluster, "acting"), body).refused(422, "Invalid")
    assert refusal["message"].endswith("metadata.resourceVersion: Invalid value: 0: must be specified for an update")
    assert refusal["details"]["causes"][0]["field"] == "metadata.resourceVersion"
    assert refusal["details"]["kind"] == "leases"


def test_a_person_asks_a_daemon_which_hears_it_and_gives_way(cluster: Cluster) -> None:
    namespace, said = cluster.namespace, list[str]()
    daemon = ActingLease(client(cluster), namespace, DURATION_S, gives_way=True)
    daemon.acquire(said.append, lambda: False)
    person = ActingLease(client(cluster), namespace, DURATION_S, purpose="anna")
    waiting = threading.Thread(target=person.acquire, args=(said.append, lambda: False))
    waiting.start()
    until(lambda: daemon.asked() != "", 10, what="the ask is heard")
    assert daemon.asked() == f"{person.identity} (anna)"
    shown = cluster.get(leases(cluster, ACTING))
    assert shown["metadata"]["annotations"] == {GIVES_WAY: "true", ASKED_BY: daemon.asked()}
    assert shown["spec"]["holderIdentity"] == daemon.identity
    renewals = shown["spec"]["renewTime"]
    until(lambda: cluster.get(leases(cluster, ACTING))["spec"]["renewTime"] > renewals, 10, what="it is renewed")
    assert cluster.get(leases(cluster, ACTING))["metadata"]["annotations"][ASKED_BY] == daemon.asked()
    daemon.release()
    waiting.join(10)
    assert person.held()
    assert acting(client(cluster), namespace) == person.identity
    assert "annotations" not in cluster.get(leases(cluster, ACTING))["metadata"]
    person.release()
    assert acting(client(cluster), namespace) == ""


def test_a_holder_puts_its_deleted_lease_back(cluster: Cluster) -> None:
    lease = ActingLease(client(cluster), cluster.namespace, DURATION_S)
    lease.acquire(print, lambda: False)
    cluster.http("DELETE", leases(cluster, ACTING)).ok()
    until(lambda: acting(client(cluster), cluster.namespace) == lease.identity, 10, what="it is put back")
    until(lease.held, 10, what="it is held")
    lease.release()


def test_of_two_daemons_one_leads_and_the_other_follows_its_stop(cluster: Cluster) -> None:
    said: list[str] = []
    first, second = (Leadership(client(cluster), cluster.namespace, DURATION_S, said.append) for _ in range(2))
    first.start()
    until(first.leading, 10, what="the first leads")
    second.start()
    try:
        assert leader(client(cluster), cluster.namespace) == first.identity
        renewals = cluster.get(leases(cluster, LEADING))["spec"]["renewTime"]
        until(lambda: cluster.get(leases(cluster, LEADING))["spec"]["renewTime"] > renewals, 10, what="it is renewed")
        assert not second.leading()
        first.stop()
        until(second.leading, 3, what="the second leads")
        assert leader(client(cluster), cluster.namespace) == second.identity
        assert cluster.get(leases(cluster, LEADING))["spec"]["leaseTransitions"] == 3, "taken, released, taken"
    finally:
        first.stop()
        second.stop()
    assert leader(client(cluster), cluster.namespace) == ""
    others = {"This daemon leads.", "This daemon does not lead any more."}
    assert {text for text in said if "stands by" not in text} <= others

"""Leases on both Kubernetes: a PUT after a deletion."""

from __future__ import annotations

from tests.support.peers.clusters import Cluster


def leases(cluster: Cluster, name: str = "") -> str:
    return cluster.path("leases", name, group="coordination.k8s.io")


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

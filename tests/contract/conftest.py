"""Four servers: our vCenter and vcsim, our Kubernetes and a real control plane. Each body meets both of its kind."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer

from tests.support.fleets import QUARTER
from tests.support.peers.clusters import Cluster, condition
from tests.support.peers.control_plane import NODE_GRACE_S, ControlPlane
from tests.support.peers.lanes import Lanes
from tests.support.peers.machines import OurMachines, RealMachines
from tests.support.peers.processes import until
from tests.support.peers.vcenters import TASK_S, Client, Vcenter, ours, vcsim
from vgpuctl.sim.inventory import Durations, Group, HostSpec, Inventory, VmSpec, default_inventory, v100
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate

NODES = ("worker-1", "worker-2", "worker-3")
PACE = Durations(
    suspend_s=TASK_S,
    power_on_s=TASK_S,
    guest_boot_s=0.1,
    kubelet_s=0.2,
    pod_end_s=0.1,
    node_grace_s=NODE_GRACE_S,
    gpu_stack_s=0.1,
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.peers)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Lanes:
    return Lanes(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Where the servers' own words are, when something went wrong."""
    report = yield
    folder = item.config.stash.get(_LOGS, None)
    if report.failed and folder is not None:
        report.sections.append(("logs of the servers", str(folder)))
    return report


_LOGS = pytest.StashKey[Path]()


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("peers")
    request.config.stash[_LOGS] = folder
    return folder


@pytest.fixture(scope="session")
def our_cluster(logs: Path) -> Iterator[Cluster]:
    vms = tuple(VmSpec(name, "esx-1", vgpus=(QUARTER,), memory_locked=True) for name in NODES)
    day = Group("v100-4q-4GB", (QUARTER,), NODES)
    inventory = Inventory("gpu", (HostSpec("esx-1", (v100(0),)),), vms, (day,), cluster_api=True)
    with Estate(logs / "our-kubernetes", inventory, durations=PACE) as estate:
        estate.within(boot_all)
        yield all_ready(
            Cluster(
                name="ours",
                port=estate.kubernetes_port,
                token=estate.logins.token,
                ca=estate.ca,
                kubeconfig=estate.kubeconfig,
                machines=OurMachines(estate),
            )
        )


def boot_all(world: World) -> None:
    for name in NODES:
        world.kubernetes.boot(name, 1)


@pytest.fixture(scope="session")
def plane(logs: Path) -> Iterator[ControlPlane]:
    """The real control plane, without machines."""
    plane = ControlPlane(logs / "control-plane")
    try:
        plane.up()
        yield plane
    finally:
        plane.down()


@pytest.fixture(scope="session")
def real_cluster(logs: Path) -> Iterator[Cluster]:
    plane = ControlPlane(logs / "real-kubernetes")
    try:
        plane.up()
        for name in NODES:
            plane.start_kubelet(name)
        yield all_ready(
            Cluster(
                name="real",
                port=plane.port,
                token=plane.token,
                ca=plane.ca,
                kubeconfig=plane.kubeconfig,
                machines=RealMachines(plane),
            )
        )
    finally:
        plane.down()


def all_ready(cluster: Cluster) -> Cluster:
    def ready() -> bool:
        nodes = cluster.get("/api/v1/nodes")["items"]
        leases = cluster.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")["items"]
        return len(leases) == len(nodes) == len(NODES) and all(condition(node, "Ready") == "True" for node in nodes)

    until(ready, 60, what="all nodes are Ready")
    return cluster


@pytest.fixture(params=["ours", "real"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One of the two, with a namespace for this test alone. Afterwards none of its pods is left on a node."""
    whole: Cluster = request.getfixturevalue(f"{request.param.replace('ours', 'our')}_cluster")
    namespace = f"t{zlib.crc32(request.node.nodeid.encode())}"
    whole.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    mine = dataclasses.replace(whole, namespace=namespace)
    yield mine
    whole.http("DELETE", f"/api/v1/namespaces/{namespace}").ok()
    # The namespace takes no new pods from here on, but a real server lets those that are there stay for five seconds.
    whole.http("DELETE", mine.path("pods"), {"gracePeriodSeconds": 0}).ok()


@pytest.fixture(scope="session")
def our_vcenter(logs: Path) -> Iterator[Vcenter]:
    with ours(logs / "our-vcenter", dataclasses.replace(default_inventory(), workloads=()), PACE) as vcenter:
        yield vcenter


@pytest.fixture(scope="session")
def vcsim_vcenter(logs: Path) -> Iterator[Vcenter]:
    folder = logs / "vcsim"
    folder.mkdir()
    with vcsim(folder, "open-sesame") as vcenter:
        yield vcenter


@pytest.fixture(params=["ours", "vcsim"])
def vcenter(request: pytest.FixtureRequest) -> Vcenter:
    name = {"ours": "our_vcenter", "vcsim": "vcsim_vcenter"}[request.param]
    found: Vcenter = request.getfixturevalue(name)
    return found


@pytest.fixture
def client(vcenter: Vcenter) -> Iterator[Client]:
    """A session of the test's own. All workers are off and without a vGPU before it."""
    client = Client(vcenter)
    client.as_at_the_beginning()
    yield client
    client.close()

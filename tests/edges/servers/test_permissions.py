"""Before a plan begins, Kubernetes is asked whether our account may do what the plan needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.fleets import pod
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import NotAllowedError, NotFoundError
from vgpuctl.kube.permissions import Permission, check, may
from vgpuctl.model.errors import ExitCode
from vgpuctl.model.requests import DeletePod, Evict, PatchNode, PowerOnVm, Request, ScaleWorkload
from vgpuctl.model.workloads import Workload

Attributes = dict[str, str]
NODE = PatchNode(node="worker-1")
POWER_ON = PowerOnVm(worker="worker-1", vm="vm-1")


@dataclass
class Server:
    """Answers reviews; `denies` says which."""

    denies: Callable[[Attributes], bool] = lambda _: False
    settings: KubernetesSettings = field(default_factory=KubernetesSettings)
    asked: list[Attributes] = field(default_factory=list)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        attributes = body["spec"]["resourceAttributes"]
        self.asked.append(attributes)
        return {"status": {"allowed": not self.denies(attributes)}}


def checked(server: Server, *requests: Request) -> None:
    check(server, requests)  # type: ignore[arg-type]


def refusal(server: Server, *requests: Request) -> NotAllowedError:
    with pytest.raises(NotAllowedError) as caught:
        checked(server, *requests)
    return caught.value


def evict(namespace: str) -> Evict:
    return Evict(pod=pod("web", namespace=namespace))


def scaled(kind: str) -> ScaleWorkload:
    workload = Workload(kind=kind, namespace="team", name="web", version="1", replicas=2)
    return ScaleWorkload(workload=workload, replicas=0, scaled=None)


def test_each_right_is_asked_for_once_however_many_requests_need_it() -> None:
    server = Server()
    checked(server, NODE, NODE, *(evict(f"team-{number}") for number in range(50)), POWER_ON)
    assert server.asked == [
        {"verb": "update", "group": "coordination.k8s.io", "resource": "leases", "namespace": "vgpuctl"}
        | {"name": "vgpuctl"},
        {"verb": "patch", "resource": "nodes"},
        {"verb": "create", "resource": "pods", "subresource": "eviction"},
    ]


def test_a_missing_right_ends_it_with_5_and_is_named() -> None:
    error = refusal(Server(lambda asked: asked["resource"] in {"nodes", "leases"}), NODE, evict("team"))
    assert error.exit_code is ExitCode.UNREACHABLE
    assert error.message == (
        "This account may not update leases in the namespace vgpuctl, patch nodes. Nothing was changed."
    )
    assert error.hint == "vgpuctl rights kubernetes prints the rights that vgpuctl needs, for kubectl apply -f -"


def test_a_right_in_the_namespaces_that_matter_is_enough() -> None:
    server = Server(lambda asked: asked["resource"] == "pods" and asked.get("namespace") != "team")
    checked(server, evict("team"))
    assert refusal(server, evict("team"), evict("other")).message.startswith(
        "This account may not create pods/eviction in the namespace other."
    )


@pytest.mark.parametrize(
    ("request_", "words", "option"),
    [
        (DeletePod(pod=pod("web", namespace="team")), "delete pods in the namespace team", "--force"),
        (scaled("deployment"), "patch deployments in the namespace team", "--scale"),
        (scaled("statefulset"), "patch statefulsets in the namespace team", "--scale"),
    ],
    ids=["force", "deployment", "statefulset"],
)
def test_what_an_option_adds_is_named_with_its_option(request_: Request, words: str, option: str) -> None:
    error = refusal(Server(lambda asked: asked["resource"] != "leases"), request_)
    assert words in error.message
    assert (error.hint or "").startswith(f"vgpuctl rights kubernetes {option} prints")


@pytest.mark.parametrize("error", [NotAllowedError("no"), NotFoundError("none")])
def test_a_server_that_cannot_be_asked_will_say_it_itself(error: Exception) -> None:
    def unable(_: Attributes) -> bool:
        raise error

    server = Server(unable)
    assert may(server, Permission(verb="patch", resource="nodes"))  # type: ignore[arg-type]
    checked(server, NODE)

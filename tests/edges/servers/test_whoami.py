"""Orders bear the name by which the API server knows the person."""

from __future__ import annotations

import getpass
import socket
from typing import Any

import pytest

from tests.support.kubernetes_asked import Asked
from vgpuctl.kube.access import KubernetesSettings, ServiceAccount
from vgpuctl.kube.client import NotAllowedError, NotFoundError
from vgpuctl.kube.whoami import LONGEST_NAME, whoami
from vgpuctl.model.errors import PassingError
from vgpuctl.sim.world import World


class Server:
    """Answers one review; an error is raised."""

    def __init__(self, answer: object, settings: KubernetesSettings | None = None) -> None:
        self._answer = answer
        self.settings = settings or KubernetesSettings()

    def post(self, _path: str, _body: dict[str, Any]) -> object:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def named(server: Server) -> str:
    return whoami(server)  # type: ignore[arg-type]


def user(name: object) -> Server:
    return Server({"status": {"userInfo": {"username": name}}})


def test_the_name_is_the_one_that_the_server_authenticated() -> None:
    asked = Asked(World())

    class Simulated(Server):
        def post(self, path: str, body: dict[str, Any]) -> object:
            status, answer = asked.send("POST", path, body)
            assert status == 201
            return answer

    review = asked.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})[1]
    assert named(Simulated(None)) == review["status"]["userInfo"]["username"] != ""


@pytest.mark.parametrize(
    "server",
    [
        Server(NotAllowedError("no")),
        Server(NotFoundError("before Kubernetes 1.28")),
        Server({}),
        Server({"status": []}),
        Server({"status": {"userInfo": {}}}),
        user(7),
        user(" \n"),
    ],
)
def test_a_server_that_does_not_say_it_leaves_the_name_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "anna")
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop")
    assert named(server) == "anna@laptop"


def test_a_pod_is_called_by_its_own_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "vgpuctl-0")
    account = ServiceAccount(folder=tmp_path, host="h", port="1")
    assert named(Server({}, KubernetesSettings(account=account))) == "pod vgpuctl-0"


def test_a_server_that_does_not_answer_just_now_is_an_error_and_gives_no_other_name() -> None:
    with pytest.raises(PassingError):
        named(Server(PassingError("503")))


def test_a_name_is_one_line_of_bounded_length() -> None:
    assert named(user("anna\n  Error:  all gone")) == "anna Error: all gone"
    assert len(named(user("a" * 100_000))) == LONGEST_NAME

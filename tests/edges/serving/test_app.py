"""What the daemon's HTTP server answers, and to which readers."""

from __future__ import annotations

import pytest

from tests.support.asgi import ask
from tests.support.asgi import served_app as app
from vgpuctl.daemon.serving.app import SAFE
from vgpuctl.model.errors import UsageError

PATHS = ("/", "/healthz", "/readyz", "/status.json", "/metrics")
SECRET = ("/", "/status.json", "/metrics", "/nothing")


def test_health_is_200_or_503_with_what_is_missing() -> None:
    assert ask(app(), "/healthz").status == 200
    assert ask(app(alive=False), "/healthz").status == 503
    assert ask(app(), "/readyz").status == 200
    reply = ask(app(missing=("vCenter is not heard",)), "/readyz")
    assert (reply.status, reply.json()["missing"]) == (503, ["vCenter is not heard"])


def test_the_status_is_the_document_and_before_the_first_picture_503() -> None:
    reply = ask(app(status={"kind": "Status", "name": "a\u202eb\ud800"}), "/status.json")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json() == {"kind": "Status", "name": "a\u202eb\ud800"}
    assert reply.body.isascii()
    assert ask(app(), "/status.json").status == 503


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_only_get_and_head_are_answered(path: str, method: str) -> None:
    served = app(status={})
    assert ask(served, path, method).status == 405
    assert ask(served, path, "HEAD").status == ask(served, path).status == 200


@pytest.mark.parametrize("path", [*PATHS, "/nothing"])
def test_every_reply_forbids_storing_guessing_and_scripts(path: str) -> None:
    for token, host in ((None, "localhost"), (lambda: "t", "localhost"), (None, "evil.example.com")):
        headers = ask(app(token), path, host=host).headers
        assert {name: headers.get(name.lower()) for name in SAFE} == SAFE
        assert "'unsafe" not in headers["content-security-policy"]


def test_with_a_token_only_probes_are_answered_without_it() -> None:
    served = app(lambda: "right", status={})
    for path in SECRET:
        assert ask(served, path).status == 401, path
        assert ask(served, path, authorization="Bearer wrong").status == 401
        assert ask(served, path, authorization="right").status == 401
    assert ask(served, "/status.json", authorization="Bearer right").status == 200
    assert ask(served, "/healthz").status == ask(served, "/readyz").status == 200


def test_a_token_that_is_rotated_counts_at_once_and_one_that_cannot_be_read_lets_nothing_pass() -> None:
    token: list[str] = ["old"]

    def read() -> str:
        if not token:
            raise UsageError("The token file /t cannot be read.")
        return token[0]

    served = app(read, status={})
    assert ask(served, "/status.json", authorization="Bearer old").status == 200
    token[0] = "new"
    assert ask(served, "/status.json", authorization="Bearer old").status == 401
    assert ask(served, "/status.json", authorization="Bearer new").status == 200
    token.clear()
    assert ask(served, "/status.json", authorization="Bearer new").status == 503
    assert ask(served, "/healthz").status == 200


def test_on_loopback_another_hosts_name_is_refused() -> None:
    """A web page may let its own name point at 127.0.0.1, and then read what its visitor's browser gets there."""
    for host in ("localhost", "localhost:9464", "127.0.0.1:9464", "[::1]:9464", "[::1]", "LOCALHOST:1"):
        assert ask(app(status={}), "/status.json", host=host).status == 200, host
    for host in ("evil.example.com", "evil.example.com:9464", "", "localhost.evil.example.com:80", "10.0.0.1"):
        assert ask(app(status={}), "/status.json", host=host).status == 421, host
    assert ask(app(status={}, local_only=False), "/status.json", host="gpu.example.com").status == 200

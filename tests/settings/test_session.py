"""One login serves all threads; a server that is no vCenter, or none at all, is told at once."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.lab import Lab
from vgpuctl.model.errors import PassingError, UnreachableError
from vgpuctl.vsphere.session import Session, VcenterSettings
from vgpuctl.vsphere.tls import Trust

THREADS = 8


def session(lab: Lab, url: str, path: str = "/sdk") -> Session:
    port = urlsplit(url).port or 443
    trust = Trust(ca_file=lab.env["GOVC_TLS_CA_CERTS"])
    user, password = lab.env["GOVC_USERNAME"], lab.env["GOVC_PASSWORD"]
    return Session(VcenterSettings(host="127.0.0.1", port=port, path=path, user=user, password=password, trust=trust))


def test_one_login_serves_all_threads(by_day: Lab) -> None:
    one = session(by_day, by_day.env["GOVC_URL"]).open()
    by_day.calls()
    with ThreadPoolExecutor(THREADS) as pool:
        names = list(pool.map(lambda _: one.content.rootFolder.name, range(THREADS * 5)))
    one.close()
    assert len(set(names)) == 1
    calls = by_day.calls()["vcenter"]
    assert "Login" not in calls
    assert calls["Logout"] == 1


def test_another_server_is_no_vcenter(by_day: Lab) -> None:
    """It gets no password: the versions are asked for first."""
    kubernetes = json.loads(Path(by_day.env["KUBECONFIG"]).read_text())["clusters"][0]["cluster"]["server"]
    with pytest.raises(UnreachableError, match="answers, but not as a vCenter does"):
        session(by_day, kubernetes).open()
    with pytest.raises(UnreachableError, match="answers, but not as a vCenter does"):
        session(by_day, by_day.env["GOVC_URL"], "/elsewhere").open()


def test_a_server_that_hangs_up_may_answer_later(by_day: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with pytest.raises(PassingError, match="does not answer"):
        session(by_day, f"https://127.0.0.1:{port}").open()

"""Both servers together: no session is left behind at vCenter, and what silence and other hands change is seen."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import BIN, Lab
from tests.support.wire import Wire, answer, saying
from vgpuctl.files import read_files
from vgpuctl.kube.ledger import LedgerMap
from vgpuctl.model.departure import Departure
from vgpuctl.model.errors import PassingError
from vgpuctl.model.ledger import Ledger
from vgpuctl.observe.wiring import Connection
from vgpuctl.settings import Flags, settings
from vgpuctl.vsphere.session import LoginRefusedError
from vgpuctl.wire import retries

WITHIN_S = 20.0
LEFT = Departure(
    timetable="day-night", host="esx-1", origin="day", to="night", since="now", awake=("worker-1",), carried={}
)


def connection(lab: Lab, **env: str) -> Connection:
    files = read_files(Path(lab.env["VGPUCTL_PROFILES"]), Path(lab.env["VGPUCTL_SCHEDULES"]))
    return Connection(settings(Flags(), {**lab.env, **env}), files.catalogue)


@pytest.fixture
def opened(by_day: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.01)
    one = connection(by_day)
    yield one.open()
    one.close()


def until(done: Callable[[], Any]) -> None:
    ends_s = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < ends_s
        time.sleep(0.01)


def kubeconfig(lab: Lab, folder: Path, server: str) -> dict[str, str]:
    """The lab's, but for the server."""
    config = json.loads(Path(lab.env["KUBECONFIG"]).read_text())
    config["clusters"][0]["cluster"] = {"server": server}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return {"KUBECONFIG": str(path)}


def logins(lab: Lab) -> tuple[int, int]:
    calls = lab.calls().get("vcenter", {})
    return calls.get("Login", 0), calls.get("Logout", 0)


def test_where_kubernetes_does_not_answer_each_try_is_in_the_same_session(by_day: Lab, tmp_path: Path) -> None:
    with Wire(saying(answer(b"{}", "503 Busy"))) as wire:
        one = connection(by_day, **kubeconfig(by_day, tmp_path, wire.url))
        for _ in range(3):
            with pytest.raises(PassingError, match="cannot answer just now"):
                one.open()
        assert logins(by_day) == (1, 0)
        one.close()
    assert logins(by_day) == (0, 1)


def test_a_command_that_gives_kubernetes_up_has_logged_out(by_day: Lab, tmp_path: Path) -> None:
    with Wire(saying(answer(b"{}", "503 Busy"))) as wire:
        by_day.more_env = {**kubeconfig(by_day, tmp_path, wire.url), "VGPUCTL_CONNECT_SECONDS": "0.1"}
        ran = by_day.vgpuctl("status")
    assert (ran.code, "cannot answer just now" in ran.err) == (5, True)
    assert logins(by_day) == (1, 1)


def test_a_command_that_is_terminated_while_it_waits_has_logged_out(by_day: Lab, tmp_path: Path) -> None:
    """Whatever the other server does: this one takes requests, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = kubeconfig(by_day, tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        command = [str(BIN / "vgpuctl"), "status"]
        with subprocess.Popen(command, env=by_day.env | env, stderr=subprocess.PIPE, text=True) as process:
            until(lambda: logins(by_day) == (1, 0))
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, err) == (130, "Stopped at once. To go on, run the same command again.\n")
    assert logins(by_day) == (0, 1)


def test_who_stays_sees_where_hosts_go_without_asking(by_day: Lab, opened: Connection) -> None:
    """They were read once, at the start."""
    written = LedgerMap(opened._client, "vgpuctl")
    assert opened.fleet().departures == {}
    opened.follow(ledger=True)
    try:
        written.write({LEFT.key: LEFT})
        until(lambda: opened.fleet().departures == {LEFT.key: LEFT})
        written.write({LEFT.key: None})
        until(lambda: opened.fleet().departures == {})
    finally:
        opened._client.delete("/api/v1/namespaces/vgpuctl/configmaps/vgpuctl")


def test_who_does_not_stay_reads_them_when_they_are_needed(opened: Connection) -> None:
    opened.follow()
    assert opened.world().ledger.read() == Ledger()
    assert not opened._ledger_reflector.heard


def test_a_silent_stream_is_named_with_its_reason(opened: Connection) -> None:
    opened.follow()
    assert (opened.silent_streams(), opened.fleet().unheard()) == ({}, "")
    opened._vcenter._mark_silent(PassingError("vCenter vc:443 does not answer: timed out."))
    opened._kubernetes.reflectors["pods"]._mark_silent(PassingError("the watch broke: ProtocolError"))
    fleet = opened.fleet()
    assert fleet.stale == ("vCenter", "Kubernetes")
    assert fleet.unheard() == (
        "vCenter and Kubernetes cannot be heard: vCenter vc:443 does not answer: timed out; "
        "pods: the watch broke: ProtocolError"
    )


def test_a_list_that_is_still_being_read_is_not_begun_twice(by_day: Lab, tmp_path: Path) -> None:
    """A login that is refused ends the try at once; the next one may come before Kubernetes has answered the first."""

    tried = threading.Event()

    def later(wire: Wire, connection: socket.socket, asked: bytes) -> None:
        if b"/nodes" in asked:
            tried.wait(WITHIN_S)
        connection.sendall(answer(b"{}", "503 Busy"))

    with Wire(later) as wire:
        one = connection(by_day, **kubeconfig(by_day, tmp_path, wire.url), GOVC_PASSWORD="wrong")
        for _ in range(3):
            with pytest.raises(LoginRefusedError):
                one.open()
        tried.set()
        until(lambda: one._first_fill and one._first_fill.done())
        one.close()
    assert len([path for path in wire.paths() if "/nodes" in path]) == 1

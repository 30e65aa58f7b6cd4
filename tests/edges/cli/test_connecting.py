"""What every command does around its connection: warnings, patience, and a session that is always closed."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.wire import Wire, answer, saying, self_signed
from vgpuctl.cli.common import connected, raise_on_stop_signals, stop_signals
from vgpuctl.cli.showing.history import _past
from vgpuctl.files import Files
from vgpuctl.model.errors import PassingError, UnreachableError
from vgpuctl.model.profiles import Catalogue
from vgpuctl.settings import Flags
from vgpuctl.vsphere.session import LoginRefusedError

FILES = Files(catalogue=Catalogue({}, ()), timetables={})


class Connection:
    """It opens as it is told to."""

    unverified: tuple[str, ...] = ()

    def __init__(self, *ends: Exception) -> None:
        self.ends, self.opened, self.closed = list(ends), 0, 0

    def open(self) -> None:
        self.opened += 1
        if self.ends:
            raise self.ends.pop(0)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses, which take no time."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    for name, value in {"VCENTER": "alice@127.0.0.1:1", "PASSWORD": "x", "CONNECT_SECONDS": "0.6"}.items():
        monkeypatch.setenv(f"VGPUCTL_{name}", value)
    before = signal.getsignal(signal.SIGTERM)
    yield found
    signal.signal(signal.SIGTERM, before)


def connect(monkeypatch: pytest.MonkeyPatch, connection: Connection, **how: Any) -> None:
    monkeypatch.setattr("vgpuctl.observe.wiring.Connection", lambda *_: connection)
    with connected(Flags(), FILES, **how):
        pass


def refused(after_s: float = 0.0) -> LoginRefusedError:
    error = LoginRefusedError("vCenter vc does not accept this user and password.")
    error.after_s = after_s
    return error


@pytest.mark.parametrize("end", [UnreachableError("not trusted"), KeyboardInterrupt()], ids=repr)
def test_what_was_opened_in_part_is_closed(end: Any, slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(end)
    with pytest.raises(type(end)):
        connect(monkeypatch, connection)
    assert (connection.opened, connection.closed) == (1, 1)


def test_a_server_that_is_busy_is_asked_again(slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(PassingError("vCenter is busy."), PassingError("vCenter is busy."))
    connect(monkeypatch, connection)
    assert (connection.opened, connection.closed, slept) == (3, 1, [0.5, 0.5])


def test_a_command_does_not_try_a_refused_login_again(slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(refused())
    with pytest.raises(LoginRefusedError):
        connect(monkeypatch, connection)
    assert (connection.opened, connection.closed, slept) == (1, 1, [])


def test_who_stays_tries_it_again_as_rarely_as_it_must_be(
    slept: list[float], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """To end would be worse: whatever starts a daemon anew does not know of accounts that are locked."""
    connection = Connection(refused(), refused(300.0))
    connect(monkeypatch, connection, lasting=True)
    assert (connection.opened, slept) == (3, [1.0, 300.0])
    assert capsys.readouterr().err.count("does not accept this user and password") == 2


@pytest.mark.usefixtures("slept")
def test_being_terminated_is_being_interrupted() -> None:
    """So that what was opened is closed."""
    raise_on_stop_signals()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def kubeconfig(folder: Path, server: str, **cluster: Any) -> str:
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "me", "user": {"token": "none"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)


def said(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.usefixtures("slept")
def test_a_kubernetes_that_nobody_verifies_is_said_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Wire(saying(answer(b'{"items": []}')), tls=self_signed()) as wire:
        path = kubeconfig(tmp_path, wire.url, **{"insecure-skip-tls-verify": True})
        told = f"The certificate of Kubernetes at {wire.url} is not verified, because you asked for that."
        assert not _past(Flags(kubeconfig=path)).entries
        assert said(capsys.readouterr().err) == told
        with pytest.raises(UnreachableError), connected(Flags(kubeconfig=path), FILES):
            pass
        assert told in said(capsys.readouterr().err)


@pytest.mark.parametrize(("handler", "ends"), [(signal.SIG_IGN, False), (signal.SIG_DFL, True)])
def test_a_signal_that_nohup_ignores_stays_ignored(handler: signal.Handlers, ends: bool) -> None:
    before = signal.signal(signal.SIGHUP, handler)
    try:
        assert (signal.SIGHUP in stop_signals()) is ends
    finally:
        signal.signal(signal.SIGHUP, before)

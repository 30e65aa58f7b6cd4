"""Where the daemon's HTTP server listens, and when it refuses to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vgpuctl.model.errors import UsageError
from vgpuctl.settings import Flags
from vgpuctl.settings.listening import Listening, listening

SAFE: dict[str, Any] = {"listen-cert": "c", "listen-key": "k", "listen-token": "t"}


def found(home: Path, *, env: dict[str, str] | None = None, **given: object) -> Listening | None:
    names = {name.replace("_", "-"): value for name, value in given.items()}
    return listening(Flags(), names, {"HOME": str(home)} | (env or {}))


def address(home: Path, listen: str) -> tuple[str, int]:
    made = found(home, listen=listen, listen_openly=True)
    assert made is not None
    return made.host, made.port


def test_without_an_address_there_is_no_server(tmp_path: Path) -> None:
    assert found(tmp_path) is None
    with pytest.raises(UsageError, match="--listen-token is set, but no address"):
        found(tmp_path, listen_token="t")


def test_a_port_alone_is_on_loopback(tmp_path: Path) -> None:
    assert address(tmp_path, "9464") == ("127.0.0.1", 9464)
    assert address(tmp_path, ":9464") == ("127.0.0.1", 9464)
    assert address(tmp_path, "0.0.0.0:0") == ("0.0.0.0", 0)
    assert address(tmp_path, "[::]:80") == ("::", 80)
    assert address(tmp_path, "gpu.example.com:65535") == ("gpu.example.com", 65535)


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "localhost:http", "1.2.3.4:65536", "::1:80", "a:-1"])
def test_what_is_no_address_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"--listen must be HOST:PORT"):
        found(tmp_path, listen=text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "[::1]", "localhost"])
def test_on_loopback_nothing_more_is_needed(tmp_path: Path, host: str) -> None:
    made = found(tmp_path, listen=f"{host}:1")
    assert made is not None
    assert made.on_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "localhost.example.com"])
@pytest.mark.parametrize("left_out", ["listen-token", "listen-cert"])
def test_beyond_loopback_a_certificate_and_a_token_are_needed_or_the_word_openly(
    tmp_path: Path, host: str, left_out: str
) -> None:
    some: dict[str, Any] = {name: value for name, value in SAFE.items() if name != left_out}
    if left_out == "listen-cert":
        del some["listen-key"]
    with pytest.raises(UsageError, match="can be reached by other machines") as told:
        found(tmp_path, listen=f"{host}:1", **some)
    assert "--listen-openly" in str(told.value.hint)
    assert found(tmp_path, listen=f"{host}:1", **some, listen_openly=True) is not None
    assert found(tmp_path, listen=f"{host}:1", **SAFE) is not None


def test_certificate_and_key_belong_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="belong together"):
        found(tmp_path, listen="1", listen_cert="c")


def test_the_flag_decides_then_the_variable_then_the_file(tmp_path: Path) -> None:
    config = tmp_path / ".config" / "vgpuctl" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text('version: 1\nlisten: "3"\nlisten-token: token\n')
    env = {"VGPUCTL_LISTEN": "2"}
    ports = [
        made.port if made else None
        for made in (found(tmp_path, env=env, listen="1"), found(tmp_path, env=env), found(tmp_path))
    ]
    assert ports == [1, 2, 3]
    made = found(tmp_path)
    assert made is not None
    assert made.token == config.parent / "token"

"""The simulators' life: up, found again, ended; nothing left behind, nothing shown to others."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.lab import Lab
from vgpuctl.cli.app import app
from vgpuctl.cli.lazy import build_command
from vgpuctl.cli.simulating.access import SIM_PACKAGES
from vgpuctl.sim import lifecycle
from vgpuctl.sim.environment import parse_exports
from vgpuctl.sim.lifecycle import running_pid

ENV = {
    "GOVC_URL",
    "GOVC_USERNAME",
    "GOVC_PASSWORD",
    "GOVC_TLS_CA_CERTS",
    "KUBECONFIG",
    "KUBERC",
    "VGPUCTL_CONFIG",
    "VGPUCTL_PROFILES",
    "VGPUCTL_SCHEDULES",
    "VGPUCTL_SIM_DIR",
}


def test_sim_env_prints_the_file_env(by_day: Lab) -> None:
    text = by_day.vgpuctl("sim", "env", "--dir", str(by_day.folder)).ok().out
    assert text == (by_day.folder / "env").read_text()
    assert parse_exports(text).keys() == ENV
    assert {line.split()[0] for line in text.splitlines()} == {"unset", "export"}
    assert parse_exports(text)["GOVC_URL"].startswith("https://127.0.0.1:")


def test_secrets_are_for_their_owner_only(by_day: Lab) -> None:
    for name in ("env", "kubeconfig", "control.json"):
        assert stat.S_IMODE((by_day.folder / name).stat().st_mode) == 0o600


def test_a_second_up_says_that_it_runs(by_day: Lab) -> None:
    ran = by_day.vgpuctl("sim", "up", "--dir", str(by_day.folder), "--detach")
    assert ran.code == 1
    assert "already run in" in ran.err
    assert by_day.vgpuctl("status").code == 0


def test_calls_are_the_clients_own(by_day: Lab) -> None:
    """An idle world counts nothing; what a client asks is counted by server and method."""
    assert by_day.calls() == {}
    by_day.kubectl("get", "nodes").ok()
    assert by_day.calls()["kubernetes"] == {"GET nodes": 1}


def runs(pid: int) -> bool:
    """A process that has ended may stay in the table until somebody asks how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_down_ends_it_and_says_so_again(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab()
    pid = int((lab.folder / "pid").read_text())
    assert "Stopped." in lab.vgpuctl("sim", "down", "--dir", str(lab.folder)).ok().out
    assert not runs(pid)
    assert not (lab.folder / "pid").exists()
    assert "No simulators run in this folder." in lab.vgpuctl("sim", "down", "--dir", str(lab.folder)).ok().out
    ran = lab.vgpuctl("sim", "calls", "--dir", str(lab.folder))
    assert ran.code == 1
    assert "vgpuctl sim up" in ran.err


def test_a_crash_leaves_nothing_that_blocks_the_next(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab()
    os.kill(int((lab.folder / "pid").read_text()), signal.SIGKILL)
    lab.vgpuctl("sim", "up", "--dir", str(lab.folder), "--detach", "--instant").ok()
    lab.vgpuctl("status").ok()


def test_env_of_a_folder_without_servers(tmp_path: Path) -> None:
    ran = Lab(tmp_path).vgpuctl("sim", "env", "--dir", str(tmp_path / "none"))
    assert ran.code == 2
    assert "vgpuctl sim up" in ran.err


def test_servers_that_are_too_busy_to_answer_are_still_known(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab()
    pid = int((lab.folder / "pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        assert running_pid(lab.folder) == pid
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_number_that_is_another_process_by_now_is_no_server(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    assert running_pid(tmp_path) is None


@pytest.mark.parametrize("words", ["demo", "sim up --dir lab", "sim up --dir lab --detach"])
@pytest.mark.parametrize("missing", SIM_PACKAGES)
def test_without_the_extra_it_says_what_to_install(
    words: str, missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(lifecycle, "start_detached", lambda *_: pytest.fail("it tried to start them"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        build_command(app)(words.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"Error: The simulators are not installed: {missing} missing.\n"
        "Hint: Install them with: pip install 'vgpuctl[sim]'\n"
    )
    assert not list(tmp_path.iterdir())

"""What a stranger gets: the wheel, in an environment of its own, with no checkout at hand."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.lab import BIN

ROOT = Path(__file__).parents[2]
DEMO_WITHIN_S = 60


def run(*words: str, cwd: Path) -> str:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("GOVC_", "VGPUCTL_", "KUBE"))}
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.long
def test_an_installed_wheel_needs_no_checkout(tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", str(tmp_path / "venv"), cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(str(python), "-m", "pip", "install", "--quiet", str(ROOT), cwd=tmp_path)
    vgpuctl = str(tmp_path / "venv" / "bin" / "vgpuctl")
    run(vgpuctl, "sim", "up", "--dir", "lab", "--detach", "--instant", cwd=tmp_path)
    try:
        run(
            "bash",
            "-c",
            f". lab/env && {vgpuctl} provision && {vgpuctl} label-nodes && {vgpuctl} switch day",
            cwd=tmp_path,
        )
    finally:
        run(vgpuctl, "sim", "down", "--dir", "lab", cwd=tmp_path)


@pytest.mark.long
def test_the_demo_plays_within_a_minute_and_leaves_nothing_running(tmp_path: Path) -> None:
    began = time.monotonic()
    env = {"TMPDIR": str(tmp_path)}
    shown = run("env", *(f"{k}={v}" for k, v in env.items()), str(BIN / "vgpuctl"), "demo", cwd=tmp_path)
    assert time.monotonic() - began < DEMO_WITHIN_S
    assert "night since" in shown
    assert shown.count("Longest way:") == 2
    assert list(tmp_path.iterdir()) == []
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, timeout=10, check=True).stdout
    assert str(tmp_path) not in running

"""What a stranger gets: the wheel, in an environment of its own, with no checkout at hand; and the source archive."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder

from tests.support.lab import BIN
from tests.support.lock import fits
from tests.support.locked import needed_by, releases
from tests.support.paths import ROOT

DEMO_WITHIN_S = 60


def ran(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    foreign = ("GOVC_", "VGPUCTL_", "KUBE", "VSPHERE_", "VMWARE_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(foreign)} | {"HOME": str(cwd)}
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)


def run(*words: str, cwd: Path) -> str:
    done = ran(*words, cwd=cwd)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_source_archive_has_every_file_of_the_checkout(tmp_path: Path) -> None:
    """Else its own tests fail: they read the pages, the examples and what runs them."""
    if not (ROOT / ".git").exists():
        pytest.skip("only a checkout lists its files")
    checkout = set(run("git", "ls-files", cwd=ROOT).splitlines())
    (archive,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(archive) as opened:
        archived = {name.partition("/")[2] for name in opened.getnames()}
    assert checkout - archived == set()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", str(folder), str(ROOT), cwd=folder)
    return next(folder.glob("*.whl"))


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Callable[..., str]:
    """The program's path, installed with these extras and, where their hashes are known, nothing unchecked."""

    def install(*extras: str) -> str:
        run(sys.executable, "-m", "venv", str(tmp_path / "venv"), cwd=tmp_path)
        pip = (str(tmp_path / "venv" / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check")
        if fits():
            asked = tmp_path / "requirements.txt"
            asked.write_text("".join(f"{releases()[name][0]}\n" for name in needed_by("vgpuctl", *extras)))
            run(*pip, "install", "--require-hashes", "--only-binary=:all:", "--requirement", str(asked), cwd=tmp_path)
        named = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        run(*pip, "install", *(["--no-index"] if fits() else []), named, cwd=tmp_path)
        run(*pip, "check", cwd=tmp_path)
        return str(tmp_path / "venv" / "bin" / "vgpuctl")

    return install


@pytest.mark.long
def test_an_installed_wheel_needs_no_checkout(installed: Callable[..., str], tmp_path: Path) -> None:
    vgpuctl = installed("sim")
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
def test_on_production_nothing_of_the_simulators_is_installed_nor_needed(
    installed: Callable[..., str], tmp_path: Path
) -> None:
    vgpuctl = installed()
    python = str(Path(vgpuctl).parent / "python")
    there = "import importlib.util as i; print(*filter(i.find_spec, ('starlette', 'uvicorn', 'httptools', 'trustme')))"
    assert run(python, "-c", there, cwd=tmp_path).strip() == ""
    assert run(vgpuctl, "--version", cwd=tmp_path).startswith("vgpuctl ")
    for words in ("--help", "switch --help", "sim --help", "sim up --help", "demo --help", "sim scenarios"):
        assert run(vgpuctl, *words.split(), cwd=tmp_path)
    (tmp_path / "profiles.yaml").write_text((ROOT / "profiles.yaml").read_text())
    for words, message in (
        ("status", "No vCenter is given."),
        ("daemon", "No vCenter is given."),
        ("sim up --dir lab", "Install them with: pip install 'vgpuctl[sim]'"),
        ("demo", "Install them with: pip install 'vgpuctl[sim]'"),
    ):
        done = ran(vgpuctl, *words.split(), cwd=tmp_path)
        assert done.returncode == 2, (words, done.stderr)
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "lab").exists()


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

"""What others get for tests of their own: the simulated pair in a thread, and fixtures around it."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from tests.support.forked import Command, run
from tests.support.lab import BIN
from tests.support.paths import ROOT
from vgpuctl.testing import Estate
from vgpuctl.testing.fixtures import MakeEstate

PAGE = ROOT / "docs" / "how-to" / "test-your-automation.md"
WITHIN_S = 60.0


def vgpuctl(estate: Estate, *words: str) -> str:
    code, out, err = run(Command(words=words, env={**estate.environment(), "NO_COLOR": "1"}), WITHIN_S)
    assert code == 0, err
    return out


def test_a_whole_night_in_a_thread(vgpu_estate: Estate) -> None:
    vgpuctl(vgpu_estate, "provision", "--yes")
    vgpuctl(vgpu_estate, "switch", "day", "--yes")
    vgpu_estate.calls()
    vgpuctl(vgpu_estate, "switch", "night", "--yes")
    assert vgpu_estate.calls()["vcenter"]["SuspendVM_Task"] == 4
    workers = json.loads(vgpuctl(vgpu_estate, "status", "-o", "json"))["workers"]
    assert {worker["name"] for worker in workers if worker["power"] == "poweredOn"} == {"worker-5"}


def test_the_environment_of_the_test_leads_there_and_nowhere_else(
    make_vgpu_estate: MakeEstate, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("VGPUCTL_VCENTER", "vcenter.example.com")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com")
    estate: Estate = request.getfixturevalue("vgpu_estate")
    assert os.environ["KUBECONFIG"] == str(estate.kubeconfig)
    assert os.environ["GOVC_URL"].startswith("https://127.0.0.1:")
    assert not {"VGPUCTL_VCENTER", "HTTPS_PROXY"} & os.environ.keys()


def test_two_live_side_by_side_and_end_with_their_threads(make_vgpu_estate: MakeEstate) -> None:
    before = set(threading.enumerate())
    one, other = make_vgpu_estate(), make_vgpu_estate("two-cards-performance")
    assert one.env["GOVC_URL"] != other.env["GOVC_URL"]
    for each in (one, other):
        each.close()
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "estate"]
    context = ssl.create_default_context(cafile=str(one.folder / "ca.pem"))
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(one.env["GOVC_URL"], timeout=5, context=context)


def test_calls_go_wrong_and_time_passes_as_a_test_wants_it(make_vgpu_estate: MakeEstate) -> None:
    estate = make_vgpu_estate("by-day", instant=False)
    estate.fault("GET nodes", "fail", "503", times=1)
    vgpuctl(estate, "status")
    assert estate.calls()["kubernetes"]["GET nodes"] == 2, "once more after the one that failed"
    estate.advance(3600)


def test_a_reset_begins_again_at_the_same_addresses(make_vgpu_estate: MakeEstate) -> None:
    estate = make_vgpu_estate("by-day")
    env = dict(estate.env)
    vgpuctl(estate, "switch", "night", "--yes")
    estate.durations(suspend_s=1000.0)
    estate.fault("vcenter", "down", seconds=1000)
    estate.reset()
    assert (dict(estate.env), estate.faults()) == (env, [])
    vgpuctl(estate, "switch", "night", "--yes")
    assert estate.calls()["vcenter"]["SuspendVM_Task"] == 4


def test_after_a_reset_the_next_client_is_let_in(make_vgpu_estate: MakeEstate) -> None:
    estate = make_vgpu_estate()
    for _ in range(10):
        estate.fault("vcenter", "down", seconds=1000)
        estate.reset()
        for port in (estate.vcenter_port, estate.kubernetes_port):
            socket.create_connection(("127.0.0.1", port), timeout=20).close()


def test_a_reset_ends_whoever_waits_for_the_old_world(make_vgpu_estate: MakeEstate) -> None:
    estate = make_vgpu_estate("by-day")
    context = ssl.create_default_context(cafile=str(estate.ca))
    token = {"Authorization": f"Bearer {estate.logins.token}"}
    url = f"https://127.0.0.1:{estate.kubernetes_port}/api/v1/nodes?watch=true"
    with urllib.request.urlopen(urllib.request.Request(url, headers=token), timeout=20, context=context) as watch:
        assert watch.readline()
        estate.reset()
        while watch.readline():  # without an end, the connection's time limit fails this test
            pass


def test_one_that_cannot_start_says_why(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(Exception, match="Other users may write into the folder"):
        Estate(tmp_path)


def test_the_shown_example_runs(tmp_path: Path) -> None:
    for name, text in re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    env.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout

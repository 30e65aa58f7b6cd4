"""A laboratory leads nowhere else: neither in the demo nor in a shell that entered it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lab import BIN, Lab
from tests.support.trap import LEADING, PROXIES, SECRET, Trap, trap
from vgpuctl.cli.simulating import demo
from vgpuctl.sim.control.client import call_control
from vgpuctl.sim.environment import (
    FOREIGN_VARIABLES,
    NEEDED_PREFIXES,
    NEEDED_VARIABLES,
    needed_variables,
    parse_exports,
    shell_lines,
)

#: What a tool that nobody here knows may call its variables.
UNKNOWN = {"NEXT_TOOL_SERVER": "10.0.0.1", "NEXT_TOOL_PASSWORD": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET}


@pytest.fixture
def production(tmp_path: Path) -> Iterator[Trap]:
    with trap() as server:
        yield server


def test_the_laboratory_knows_every_variable_that_may_lead_elsewhere() -> None:
    """The simulators import nothing of the product and keep a list of their own. A new setting belongs there too."""
    assert {name for line in FOREIGN_VARIABLES for name in line.split()} >= LEADING


def test_a_process_needs_none_of_the_variables_that_lead_elsewhere() -> None:
    assert needed_variables(dict.fromkeys(LEADING, "x") | UNKNOWN) == {}
    kept = {"PATH": "/bin", "LC_ALL": "C", "PYTHONPATH": "x", "TERM": "xterm"}
    assert needed_variables(kept) == kept


def test_the_demos_commands_get_the_laboratory_and_what_a_process_needs(
    by_day: Lab, production: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**production.environment(tmp_path), **UNKNOWN}.items():
        monkeypatch.setenv(name, value)
    given = demo._environment(by_day.folder)
    of_the_lab = parse_exports((by_day.folder / "env").read_text())
    assert given.items() >= of_the_lab.items()
    assert all(
        name in NEEDED_VARIABLES or name.startswith(NEEDED_PREFIXES) for name in given.keys() - of_the_lab.keys()
    )
    assert SECRET not in " ".join(given.values())


def test_the_demo_connects_to_its_own_servers_alone(
    by_day: Lab, production: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in production.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(demo, "STORY", (("What it looks like.", "status"),))
    monkeypatch.setattr(demo, "DRAWN", range(1))
    shown = demo._play(demo._environment(by_day.folder), record=True)
    assert "worker-1" in shown
    assert production.connections == 0


def test_the_demo_takes_no_module_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vgpuctl.py").write_text("raise SystemExit('this is not the program')")
    monkeypatch.chdir(tmp_path)
    assert demo._run("--version", needed_variables(os.environ), record=True).startswith("vgpuctl ")


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "dash"])
def test_a_shell_that_enters_the_laboratory_keeps_nothing_that_leads_elsewhere(shell: str, by_day: Lab) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    for before in (dict.fromkeys(LEADING, SECRET), {}):
        script = f'set -eu; . "{by_day.folder}/env"; . "{by_day.folder}/env"; env'
        env = {"PATH": os.environ["PATH"], **before}
        done = subprocess.run([shell, "-c", script], env=env, capture_output=True, text=True, timeout=10, check=True)
        after = dict(line.split("=", 1) for line in done.stdout.splitlines())
        of_the_lab = parse_exports((by_day.folder / "env").read_text())
        assert {name: value for name, value in after.items() if name in LEADING | of_the_lab.keys()} == of_the_lab


def test_the_programs_of_such_a_shell_reach_the_laboratory_alone(by_day: Lab, production: Trap, tmp_path: Path) -> None:
    """Files in the home folder lead nowhere else either."""
    env = {"PATH": f"{BIN}:{os.environ['PATH']}", **production.environment(tmp_path)}
    script = f"set -e; . '{by_day.folder}/env'; vgpuctl status; kubectl get nodes; vgpuctl sim calls"
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("worker-1") >= 2
    assert production.connections == 0


def test_sim_asks_its_own_servers_directly_whatever_proxy_is_set(
    by_day: Lab, production: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, f"http://127.0.0.1:{production.port}")
    assert not call_control(by_day.folder, "GET", "clock")["frozen"]
    assert production.connections == 0


def test_values_survive_the_shell() -> None:
    odd = {"GOVC_PASSWORD": "a b'c$d\"e=f", "VGPUCTL_SIM_DIR": "/tmp/it's here"}
    assert parse_exports(shell_lines(odd)) == odd

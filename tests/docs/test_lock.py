"""tests/requirements.txt: every package that the tests install is one release, known by its hashes."""

from __future__ import annotations

import ast
import platform
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.lock import FILE, PYTHONS, bounds, fits
from tests.support.locked import RELEASE, needed_by, releases
from tests.support.paths import ROOT
from vgpuctl.cli.acting.listening import SERVING_PACKAGES
from vgpuctl.cli.simulating.access import SIM_PACKAGES

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: What is imported under another name than it is installed by.
INSTALLED_AS = {"yaml": "pyyaml", "pyVmomi": "pyvmomi", "pyVim": "pyvmomi", "prometheus_client": "prometheus-client"}


def test_it_holds_releases_and_hashes_and_nothing_else() -> None:
    """No address of an index, no option of pip: where packages come from is for each machine to say."""
    comments = re.compile(r"^#.*\n", re.MULTILINE)
    text = FILE.read_text()
    assert RELEASE.sub("", comments.sub("", text)).strip() == ""
    assert not re.search(r"://|\w\.(org|com|net|io)\b", text)
    assert len(releases()) > 50


@pytest.mark.parametrize("bound", bounds())
def test_each_bound_of_the_project_is_met(bound: str) -> None:
    asked = Requirement(bound)
    assert releases()[canonicalize_name(asked.name)]["version"] in asked.specifier


@pytest.mark.parametrize("python", PYTHONS)
def test_what_these_packages_need_is_there_too_for_each_python(python: str) -> None:
    there = releases()
    for name, asked in needed_by("vgpuctl", "sim", "keyring", "test", python=python).items():
        if name != "vgpuctl":
            assert all(there[name]["version"] in each.specifier for each in asked), name


def test_it_serves_the_pythons_that_the_project_runs_on_and_no_other_system(monkeypatch: pytest.MonkeyPatch) -> None:
    assert f">={PYTHONS[0]}" == PROJECT["requires-python"]
    for machine, libc, python, fit in (
        ("x86_64", ("glibc", "2.36"), (3, 11), True),
        ("aarch64", ("glibc", "2.28"), (3, 14), True),
        ("x86_64", ("glibc", "2.17"), (3, 11), False),
        ("x86_64", ("", ""), (3, 11), False),
        ("riscv64", ("glibc", "2.36"), (3, 11), False),
        ("x86_64", ("glibc", "2.36"), (3, 99), False),
    ):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        monkeypatch.setattr(platform, "libc_ver", lambda libc=libc: libc)
        monkeypatch.setattr(sys, "version_info", python)
        assert fits() is fit, (machine, libc, python)


def imported(*files: Path) -> set[str]:
    """The packages of others that these files import."""
    found = set[str]()
    for node in (node for path in files for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return {INSTALLED_AS.get(name, name) for name in found - sys.stdlib_module_names - {"vgpuctl"}}


def declared(requirements: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(each).name) for each in requirements}


def test_what_the_program_imports_it_declares_and_the_simulators_in_their_extra() -> None:
    base, extras = declared(PROJECT["dependencies"]), PROJECT["optional-dependencies"]
    files = set((ROOT / "vgpuctl").rglob("*.py"))
    simulators = set((ROOT / "vgpuctl" / "sim").rglob("*.py"))
    testing = set((ROOT / "vgpuctl" / "testing").rglob("*.py"))
    serving = set((ROOT / "vgpuctl" / "daemon" / "serving").rglob("*.py"))
    assert imported(*(files - simulators - testing - serving)) - declared(extras["keyring"]) <= base
    assert imported(*testing) <= declared(extras["testing"])
    assert imported(*serving) - base == declared(extras["daemon"]) == {canonicalize_name(n) for n in SERVING_PACKAGES}
    assert imported(*simulators) - base <= declared(extras["sim"]) == set(SIM_PACKAGES)
    assert not base & declared(extras["sim"])

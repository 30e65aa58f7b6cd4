"""The documentation is true: each shown command runs, each link leads somewhere, each flag and key is told."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.lab import BIN, Lab
from tests.support.paths import PAGES, ROOT, TOP
from tests.support.shim import shim

LINK = re.compile(r"\]\(([^)#]*)(#[^)]*)?\)")

#: Run by test_wheel.py, in an environment of its own.
ELSEWHERE = {"pip install '.[sim]'"}


def commands(page: Path) -> list[str]:
    """The lines of its `sh` blocks, in order."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line and line not in ELSEWHERE]
    if shutil.which("govc") is None:
        left_out = [line for line in lines if line.startswith("govc")]
        print(f"no govc here, not run: {left_out}" if left_out else "")
        lines = [line for line in lines if line not in left_out]
    return lines


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """The path of a socket has 107 characters at most."""
    with TemporaryDirectory(prefix="vgpuctl-") as name:
        yield Path(name)


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_every_shown_command_runs(page: Path, by_day: Lab, tmp_path: Path, short_folder: Path) -> None:
    """A page that starts simulators runs in a folder of its own, any other against a lab that stands."""
    lines = commands(page)
    own = any("sim up" in line for line in lines)
    env = {
        key: value for key, value in by_day.env.items() if not own or not key.startswith(("GOVC_", "KUBE", "VGPUCTL_P"))
    }
    quick = [line.replace("sim up", "sim up --instant") for line in lines]
    script = "\n".join(["set -e", *quick])
    try:
        with shim(short_folder / "bin") as forked:
            env["PATH"] = f"{forked}:{BIN}:{env['PATH']}"
            done = subprocess.run(
                ["bash", "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
            )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    finally:
        if (tmp_path / "lab" / "pid").exists():
            Lab(tmp_path / "lab").down()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        to = page.parent / target if target else page
        assert to.exists(), target
        assert not anchor or anchor.removeprefix("#") in anchors(to), f"{target}{anchor}"


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub makes anchors of them."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    texts = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


def test_make_has_the_targets_that_the_pages_name() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = {
        target
        for name in ("README.md", "CONTRIBUTING.md")
        for target in re.findall(r"`{1,3}\n?make ([a-z-]+)", (ROOT / name).read_text())
    }
    assert {"demo", "test", "lint", "test-long", "lock"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    assert (ROOT / ".ci" / "run").read_text().split("make ")[1:] == ["test\n", "lint\n", "test-long\n", "test-peers\n"]


def test_every_command_is_in_the_readme_and_its_help_has_an_example() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in (
        "status",
        "provision",
        "label-nodes",
        "switch",
        "hold",
        "unhold",
        "history",
        "schedule",
        "profiles",
        "explain",
        "rights",
        "override",
        "pause",
        "unpause",
        "maintenance",
        "unpark",
        "daemon",
        "deploy",
        "demo",
        "sim",
    ):
        assert f"vgpuctl {name}" in readme
        shown = subprocess.run(
            [str(BIN / "vgpuctl"), name, "--help"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
        assert shown
        if name in {"status", "provision", "label-nodes", "switch", "hold", "unhold", "history"}:
            assert f"vgpuctl {name}" in shown.replace("Usage: vgpuctl", "")
            for told in ("$VGPUCTL_PROFILES", "$KUBECONFIG", "--output", "-o", "--debug"):
                assert told in shown


def test_keys_of_the_files_are_told() -> None:
    page = (ROOT / "docs" / "reference" / "files.md").read_text()
    for key in (
        "timeout",
        "grace-period",
        "force",
        "delete-emptydir-data",
        "timezone",
        "starts",
        "profiles",
        "workers",
    ):
        assert key in page


def test_each_defence_names_a_test_that_is_there() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", (ROOT / "SECURITY.md").read_text())
    assert len(named) > 10
    for path, test in named:
        assert f"def {test}(" in (ROOT / path).read_text(), f"{path}::{test}"


def test_what_people_read_first_is_in_the_source_archive() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert {*TOP, "LICENSE", "docs", "tests"} <= set(built["include"])


def test_no_secret_is_in_the_picture_or_the_pages() -> None:
    assert "<svg" in (ROOT / "docs" / "demo.svg").read_text()
    for page in PAGES:
        assert "BEGIN CERTIFICATE" not in page.read_text()


def test_the_files_where_changes_begin_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.partition("## Where a change begins")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z_/-]+/[a-z_.-]*)`", table))
    assert len(named) > 15
    missing = {name for name in named if not any((root / name).exists() for root in (ROOT, ROOT / "vgpuctl"))}
    assert not missing

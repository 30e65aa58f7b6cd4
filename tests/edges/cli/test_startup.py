"""What a shell asks for at every tab loads little, and what it says of a command is what the command says of itself."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command

from tests.support.lab import BIN
from tests.support.paths import ROOT
from vgpuctl import __version__
from vgpuctl.cli.app import app
from vgpuctl.cli.lazy import build_command, group
from vgpuctl.cli.options import Output

HEAVY = {"pyVmomi", "pyVim", "kubernetes", "apscheduler", "pydantic", "rich", "yaml", "starlette", "asyncio", "ssl"}


def started(*words: str, **env: str) -> tuple[str, set[str]]:
    """What the real process says, and the names of all packages that it loaded."""
    done = subprocess.run(
        [str(BIN / "vgpuctl"), *words],
        env={**os.environ, **env, "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    loaded = set(re.findall(r"^import time:.*\|\s+(\w+)", done.stderr, re.MULTILINE))
    assert "vgpuctl" in loaded
    return done.stdout, loaded


def bash(line: str) -> dict[str, str]:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - (not line.endswith(" ")))}
    return {"_VGPUCTL_COMPLETE": "complete_bash", **words}


@pytest.mark.parametrize("words", [["--version"], ["--version", "status"]], ids=" ".join)
def test_the_version_needs_nothing(words: list[str]) -> None:
    said, loaded = started(*words)
    assert said == f"vgpuctl {__version__}\n"
    assert not loaded & (HEAVY | {"typer"})


@pytest.mark.parametrize("words", ["", "status", "switch", "sim", "sim up", "sim fault add", "sim set clock"])
def test_help_loads_little(words: str) -> None:
    said, loaded = started(*words.split(), "--help")
    assert said.startswith(f"Usage: vgpuctl {words}".rstrip())
    assert not loaded & HEAVY


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("vgpuctl st", "status"),
        ("vgpuctl switch --d", "--dry-run --debug"),
        ("vgpuctl switch night --timetable x --y", "--yes"),
        ("vgpuctl status -o j", "json"),
        ("vgpuctl sim fault a", "add"),
        ("vgpuctl sim set clock --dir lab f", "freeze"),
        ("vgpuctl sim fault ", "add list clear"),
    ],
)
def test_completion_in_bash_loads_little(line: str, found: str) -> None:
    said, loaded = started(**bash(line))
    assert said.split() == found.split()
    assert not loaded & HEAVY


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_with_a_word_of_help_loads_little(shell: str) -> None:
    asked = {"_TYPER_COMPLETE_ARGS": "vgpuctl la", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    said, loaded = started(**asked, _VGPUCTL_COMPLETE=f"complete_{shell}")
    assert "label-nodes" in said
    assert "Label each worker" in said
    assert not loaded & HEAVY


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("vgpuctl switch ", "day night"),
        ("vgpuctl switch n", "night"),
        ("vgpuctl switch night --timetable ", "day-night"),
        ("vgpuctl provision worker-1 --profile ", "v100-4q-4GB v100-16q-16GB none"),
        ("vgpuctl status worker-5", "worker-5"),
        ("vgpuctl status --profiles nowhere.yaml worker", ""),
    ],
)
def test_names_of_the_files_are_completed_without_a_server(line: str, found: str) -> None:
    here = {"VGPUCTL_PROFILES": str(ROOT / "profiles.yaml"), "VGPUCTL_SCHEDULES": str(ROOT / "schedules")}
    said, loaded = started(**bash(line), **here)
    assert said.split() == found.split()
    assert not loaded & (HEAVY - {"yaml", "ssl", "asyncio"})


def each(command: Any, path: str = "vgpuctl") -> Iterator[tuple[str, Any]]:
    """Every name beside its stand-in, at any depth."""
    for name, below in getattr(command, "commands", {}).items():
        yield f"{path} {name}", below
        if type(below).__name__ == "LazyCommand":
            yield from each(below.callback(), f"{path} {name}")


LATER = {path: below for path, below in each(get_command(app)) if type(below).__name__ == "LazyCommand"}


@pytest.mark.parametrize("path", LATER)
def test_a_name_stands_beside_what_its_command_says_of_itself(path: str) -> None:
    assert LATER[path].help == LATER[path].callback().help.partition("\n")[0]


LEAVES = [path for path in LATER if not hasattr(LATER[path].callback(), "commands")]


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_gives_an_example_that_fits_eighty_columns(path: str) -> None:
    told = LATER[path].callback().help
    examples = [line for line in told.splitlines() if line.strip().startswith(path)]
    assert examples, "no example"
    assert max(len(line) + 2 for line in told.splitlines() if line.startswith("  ")) <= 80


def test_groups_are_looked_into() -> None:
    assert {"vgpuctl status", "vgpuctl sim", "vgpuctl sim fault"} <= LATER.keys()


def test_a_word_that_is_no_choice_is_told_with_those_that_are() -> None:
    done = subprocess.run([BIN / "vgpuctl", "status", "-o", "jsn"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'jsn' is not one of 'table', 'wide', 'json', 'yaml', 'name'; did you mean json?" in done.stderr
    assert "Value error" not in done.stderr


def test_values_are_as_typer_would_have_them() -> None:
    """What is spared is only the detour: words, choices, numbers, lists and an option's own way to be read."""
    got: dict[str, Any] = {}
    tried = group(add_completion=False)

    @tried.command()
    def command(
        names: Annotated[list[str] | None, typer.Argument()] = None,
        word: Annotated[str, typer.Option()] = "none",
        loud: Annotated[str, typer.Option(parser=str.upper)] = "NONE",
        choice: Annotated[Output, typer.Option()] = Output.TABLE,
        number: Annotated[int, typer.Option()] = 1,
    ) -> None:
        got.update(names=names, word=word, loud=loud, choice=choice, number=number)

    build_command(tried)([], standalone_mode=False)
    assert got == {"names": None, "word": "none", "loud": "NONE", "choice": Output.TABLE, "number": 1}
    build_command(tried)(
        ["a", "b", "--word", "x", "--loud", "x", "--choice", "json", "--number", "2"],
        standalone_mode=False,
    )
    assert got == {"names": ["a", "b"], "word": "x", "loud": "X", "choice": Output.JSON, "number": 2}
    assert type(got["choice"]) is Output

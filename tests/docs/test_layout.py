"""Where tests and what they share may lie."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.paths import ROOT


def test_no_module_imports_a_module_of_tests() -> None:
    """What two modules share is in tests/support."""
    modules = sorted((ROOT / "tests").rglob("*.py"))
    named = [(path.relative_to(ROOT), name) for path in modules for name in imported(path)]
    found = [f"{path}: {name}" for path, name in named if name.rpartition(".")[2].startswith("test_")]
    assert len(named) > 1000
    assert not found, "\n".join(found)


def imported(path: Path) -> list[str]:
    """The whole names of modules, and of what is taken from them."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            module = f"{'.' * node.level}{node.module or ''}"
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return names

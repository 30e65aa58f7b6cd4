"""Scenarios: inventories to begin with, as short YAML. The files beside this module come with vgpuctl."""

from __future__ import annotations

from pathlib import Path

from vgpuctl.sim.errors import SimError
from vgpuctl.sim.words import nearest

EXAMPLES = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}


def find_scenario(name: str) -> Path:
    """Return the path of a file, or of a scenario that comes with vgpuctl."""
    path = Path(name)
    if path.is_file():
        return path
    if name in EXAMPLES:
        return EXAMPLES[name]
    raise SimError(f"There is no scenario {name}{nearest(name, EXAMPLES) or '; see: vgpuctl sim scenarios'}")


def summary(path: Path) -> str:
    """Return the first sentence of the file's comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
    return comment.partition(". ")[0].rstrip(".")

"""How fast the program starts, beside kubectl in the same run: `make bench`.

It prints figures and asserts nothing, for seconds depend on the machine; ratios hardly do. All that is compared is run
in turn, so that what the machine does meanwhile meets all of it.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.scale import timed
from tests.support.lab import BIN, Lab

ROUNDS = 21


@dataclass(frozen=True, kw_only=True, eq=False)
class Started:
    """One way to start a program, and how often the yardstick's time it may take."""

    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    at_most: float | None = None

    def __str__(self) -> str:
        line = self.env.get("COMP_WORDS")
        return f"{line}<Tab>" if line else " ".join(self.words)

    def run(self, env: Mapping[str, str]) -> tuple[float, float]:
        """Its wall time and its processor time."""
        command, before = [str(BIN / self.words[0]), *self.words[1:]], used_s()
        _, wall = timed(lambda: subprocess.run(command, env={**env, **self.env}, stdout=subprocess.DEVNULL, check=True))
        return wall, used_s() - before


def tab(line: str) -> Started:
    env = {"_VGPUCTL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    return Started(words=("vgpuctl",), env=env, at_most=3)


YARDSTICK = Started(words=("kubectl", "version", "--client"))
STARTS = (
    YARDSTICK,
    Started(words=("vgpuctl", "--version"), at_most=1),
    *(tab(line) for line in ("vgpuctl st", "vgpuctl switch --d", "vgpuctl sim fault a", "vgpuctl sim fault add --n")),
    Started(words=("vgpuctl", "--help"), at_most=4),
    Started(words=("vgpuctl", "switch", "--help"), at_most=4),
)
COMMANDS = (
    Started(words=("kubectl", "get", "nodes")),
    Started(words=("vgpuctl", "status")),
    Started(words=("vgpuctl", "status", "-o", "json")),
    Started(words=("vgpuctl", "switch", "night", "--dry-run")),
)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="vgpuctl-bench-") as name:
        lab = Lab(Path(name) / "lab")
        show_starts(medians(STARTS, lab.env))
        lab = Lab.up(lab.folder, "--scenario", "by-day")
        try:
            show_commands(medians(COMMANDS, lab.env))
        finally:
            lab.down()


def medians(all_of_them: tuple[Started, ...], env: Mapping[str, str]) -> dict[Started, tuple[float, float]]:
    """The first round only warms the disk's cache."""
    rounds = [[each.run(env) for each in all_of_them] for _ in range(1 + ROUNDS)][1:]
    middle = [[statistics.median(figures) for figures in zip(*own, strict=True)] for own in zip(*rounds, strict=True)]
    return {each: (wall, processor) for each, (wall, processor) in zip(all_of_them, middle, strict=True)}


def show_starts(took: Mapping[Started, tuple[float, float]]) -> None:
    for start, (wall, _) in took.items():
        ratio = wall / took[YARDSTICK][0]
        bound = ""
        if start.at_most is not None:
            bound = f"of {start.at_most:g} times: {'met' if ratio <= start.at_most else 'MISSED'}"
        print(f"{start!s:<40}{1000 * wall:7.0f} ms{ratio:7.2f} {bound}", flush=True)


def show_commands(took: Mapping[Started, tuple[float, float]]) -> None:
    for command, (wall, processor) in took.items():
        print(f"{command!s:<40}{1000 * wall:7.0f} ms{1000 * processor:7.0f} ms of processor", flush=True)


def used_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()

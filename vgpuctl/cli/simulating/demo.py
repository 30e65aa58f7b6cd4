"""vgpuctl demo: the whole story on simulators, each command shown as one would type it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from vgpuctl.cli.common import console, show_error
from vgpuctl.cli.simulating.access import folder_of, need_simulators, sim_explained
from vgpuctl.model.errors import ExitCode

STORY = (
    ("Four day workers get a quarter of the card each, the night worker the whole card.", "provision"),
    ("Label the nodes, so that pods can choose a profile.", "label-nodes"),
    ("Day: the four day workers start.", "switch day --yes"),
    ("", "status"),
    ("Night: they are drained and suspended, and the night worker takes the card.", "switch night --yes"),
    ("", "status"),
    ("The night passes.", "sim set clock advance 11h"),
    ("Morning: back to the day.", "switch day --yes"),
    ("What took how long, at night and in the morning.", "history show 3 4"),
)

#: The commands that are drawn: a night, with the state before and after.
DRAWN = range(3, 6)

ENDING = """\
To go on by yourself:
  vgpuctl sim up --dir lab --detach && . lab/env
  vgpuctl provision && vgpuctl label-nodes && vgpuctl switch day
  kubectl get nodes -L vgpu.type,vgpuctl.io/state
  kubectl get pods -o wide
  govc vm.info 'worker-*'
  vgpuctl sim down --dir lab"""

WIDTH = 100


def command(
    svg: Annotated[
        Path | None,
        typer.Option(help="Also write an SVG picture of the output to this file.", show_default=False, dir_okay=False),
    ] = None,
) -> None:
    """Play a day, a night and a morning on a simulated vCenter and Kubernetes.

    It changes nothing outside this machine and leaves nothing running.

    Examples:

      vgpuctl demo
      vgpuctl demo --svg night.svg
    """
    from vgpuctl.sim.lifecycle import start_detached, stop  # noqa: PLC0415

    need_simulators()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(ExitCode.INTERRUPTED)))
    with tempfile.TemporaryDirectory(prefix="vgpuctl-demo-") as name, sim_explained():
        folder = folder_of(Path(name))
        try:
            start_detached(folder, [])
            shown = _play(_environment(folder), record=svg is not None)
        finally:
            stop(folder)
    console().print(f"\n{ENDING}")
    if svg is not None:
        svg.write_text(picture(shown), encoding="utf-8")


def _environment(folder: Path) -> dict[str, str]:
    """Return only the laboratory's variables and what a process needs, so that no variable leads to other servers."""
    from vgpuctl.sim.environment import needed_variables, parse_exports  # noqa: PLC0415

    # Decision 0016: in a shell with VGPUCTL_VCENTER, the demo once acted on production.
    # A list of forbidden variables would be wrong with the next tool's variable.
    return needed_variables(os.environ) | parse_exports((folder / "env").read_text())


def _play(env: dict[str, str], *, record: bool) -> str:
    shown = ""
    for number, (comment, words) in enumerate(STORY):
        heading = f"{'' if number == 0 else chr(10)}{f'# {comment}{chr(10)}' if comment else ''}$ vgpuctl {words}"
        console().print(heading, style="bold", markup=False)
        sys.stdout.flush()
        output = _run(words, env, record=record)
        shown += f"\x1b[1m{heading}\x1b[0m\n{output}" if number in DRAWN else ""
    return shown.strip()


def _run(words: str, env: dict[str, str], *, record: bool) -> str:
    """Run a command on the terminal. To be drawn, its text and colours are captured and passed on."""
    # -P: load no module from the working folder.
    arguments = [sys.executable, "-P", "-m", "vgpuctl", *words.split()]
    if record:
        coloured = {**env, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
        done = subprocess.run(arguments, env=coloured, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
        sys.stdout.write(done.stdout)
    else:
        done = subprocess.run(arguments, env=env, text=True, check=False)  # noqa: S603
    if done.returncode:
        show_error(f"vgpuctl {words} ended with {done.returncode}.", None)
        raise typer.Exit(int(ExitCode.FAILED))
    return done.stdout or ""


def picture(shown: str) -> str:
    """Return a terminal as SVG with the reader's own monospace font: it fetches nothing."""
    import io  # noqa: PLC0415
    import re  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    recorder = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    recorder.print(Text.from_ansi(shown.rstrip()))
    drawn = recorder.export_svg(title="vgpuctl demo", unique_id="vgpuctl-demo")
    # rich fetches its font from a server.
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    return drawn.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")

"""All commands. Each is loaded when it is chosen; pyVmomi, kubernetes and apscheduler only when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from vgpuctl import __version__
from vgpuctl.cli.lazy import add_lazily, build_command, group

#: The place of each command, and the first line of its help.
COMMANDS = {
    "status": (
        "vgpuctl.cli.showing.status:command",
        "Show cards, workers, who waits for which shift, and what is out of step.",
    ),
    "provision": (
        "vgpuctl.cli.acting.provision:command",
        "Give each worker the vGPU of its profile, and leave its power as it was.",
    ),
    "label-nodes": (
        "vgpuctl.cli.acting.label_nodes:command",
        "Label each worker's node with the profile that its VM really carries, and the facts that people select by.",
    ),
    "switch": (
        "vgpuctl.cli.acting.switch:command",
        "Put one shift's workers on the cards: the others are drained and suspended, these resumed.",
    ),
    "history": (
        "vgpuctl.cli.showing.history:app",
        "What earlier switches did: when, how long, step by step, and what held them up.",
    ),
    "profiles": (
        "vgpuctl.cli.showing.profiles:app",
        "Are the files right? Check them against vCenter, or print their JSON Schema.",
    ),
    "explain": (
        "vgpuctl.cli.showing.explain:command",
        "Explain the codes of refusals and of ends: what each means, and what to do.",
    ),
    "daemon": (
        "vgpuctl.cli.acting.daemon:command",
        "Keep the shift of the hour, by every timetable, until it is ended.",
    ),
    "demo": (
        "vgpuctl.cli.simulating.demo:command",
        "Play the whole story, day to night and back, against a simulated vCenter and Kubernetes.",
    ),
    "sim": (
        "vgpuctl.cli.simulating.simulators:app",
        "A simulated vCenter and Kubernetes on loopback, to try things on.",
    ),
}
app = group(name="vgpuctl", epilog="Try it without a vCenter: vgpuctl demo")
add_lazily(app, COMMANDS)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vgpuctl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """vGPU profiles for Kubernetes workers on vSphere: attach them, label the nodes, switch them by timetable."""


def run() -> None:
    build_command(app)()

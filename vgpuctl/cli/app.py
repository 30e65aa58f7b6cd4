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
        "Show cards, workers, waiting pods, and what is out of step.",
    ),
    "provision": (
        "vgpuctl.cli.acting.provision:command",
        "Give each worker the vGPU of its profile. Its power state stays as it was.",
    ),
    "label-nodes": (
        "vgpuctl.cli.acting.label_nodes:command",
        "Label each worker's node with the profile that its VM carries, and with facts to select by.",
    ),
    "switch": (
        "vgpuctl.cli.acting.switch:command",
        "Put one shift's workers on the cards: suspend the others, resume these.",
    ),
    "hold": (
        "vgpuctl.cli.acting.hold:hold",
        "Keep workers as they are: no shift, switch or provision moves them until the hold ends.",
    ),
    "unhold": (
        "vgpuctl.cli.acting.hold:unhold",
        "End holds at once: the daemon, switch and provision move these workers again.",
    ),
    "history": (
        "vgpuctl.cli.showing.history:app",
        "Show earlier switches: when, how long, each step, and what held them up.",
    ),
    "schedule": (
        "vgpuctl.cli.showing.schedule:app",
        "Show which shift comes when, and check the timetables.",
    ),
    "profiles": (
        "vgpuctl.cli.showing.profiles:app",
        "Check the files against vCenter, or print their JSON Schema.",
    ),
    "explain": (
        "vgpuctl.cli.showing.explain:command",
        "Explain the codes of refusals and of ends: what each means, and what to do.",
    ),
    "rights": (
        "vgpuctl.cli.showing.rights:app",
        "Print the rights that vgpuctl needs, for kubectl and govc.",
    ),
    "override": (
        "vgpuctl.cli.acting.override:command",
        "Put another shift in force for a while, whatever the timetable says.",
    ),
    "pause": (
        "vgpuctl.cli.acting.pause:command",
        "Pause the daemon: it begins nothing until the end of the pause, or until `vgpuctl unpause`.",
    ),
    "unpause": (
        "vgpuctl.cli.acting.pause:unpause",
        "End a pause: the daemon puts the shift that is due in force again.",
    ),
    "maintenance": (
        "vgpuctl.cli.acting.maintenance:app",
        "Hold hosts before a patch, with their sleepers really off; give them back afterwards.",
    ),
    "unpark": (
        "vgpuctl.cli.acting.unpark:command",
        "Try hosts again that the daemon has parked after several failures.",
    ),
    "daemon": (
        "vgpuctl.cli.acting.daemon:command",
        "Follow the timetables: keep the current shift on the cards until stopped.",
    ),
    "deploy": (
        "vgpuctl.cli.showing.deploy:command",
        "Print the manifests that run the daemon in Kubernetes, or a systemd unit.",
    ),
    "demo": (
        "vgpuctl.cli.simulating.demo:command",
        "Play a day, a night and a morning on a simulated vCenter and Kubernetes.",
    ),
    "sim": (
        "vgpuctl.cli.simulating.simulators:app",
        "Run a simulated vCenter and Kubernetes on this machine.",
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
    """Attach vGPU profiles to Kubernetes workers on vSphere, label their nodes, and switch by timetable."""


def run() -> None:
    build_command(app)()

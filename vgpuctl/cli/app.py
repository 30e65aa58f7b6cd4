"""All commands together. Nothing here loads pyVmomi, kubernetes or apscheduler: a command does when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from vgpuctl import __version__
from vgpuctl.cli import daemon, demo, label_nodes, provision, simulators, status, switch

app = typer.Typer(
    name="vgpuctl",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Try it without a vCenter: [bold]vgpuctl demo[/bold]",
)
COMMANDS = {
    "status": status.command,
    "provision": provision.command,
    "label-nodes": label_nodes.command,
    "switch": switch.command,
    "daemon": daemon.command,
    "demo": demo.command,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
app.add_typer(simulators.app, name="sim")


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

"""vgpuctl sim …: a vCenter and a Kubernetes of one's own, on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.basics.phrases import count
from vgpuctl.cli.common import console, print_json, show_error
from vgpuctl.cli.lazy import add_lazily, group
from vgpuctl.cli.options import Output, OutputOption
from vgpuctl.cli.simulating.access import DirOption, controls, folder_of, need_simulators, sim_explained
from vgpuctl.model.errors import ExitCode

if TYPE_CHECKING:
    from vgpuctl.sim.inventory import Durations, Inventory

app = group(add_completion=False, help="Run a simulated vCenter and Kubernetes on this machine.")


@app.command()
def up(
    dir: DirOption,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run in the background. The command returns once both servers answer.")
    ] = False,
    instant: Annotated[bool, typer.Option("--instant", help="Let suspends, starts and boots take no time.")] = False,
    hosts: Annotated[int, typer.Option(min=1, max=1000, help="The number of ESXi hosts.")] = 1,
    cards: Annotated[int, typer.Option(min=1, max=16, help="The number of cards in each host.")] = 1,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME", help="Simulate the world of this YAML file or scenario. See: vgpuctl sim scenarios"
        ),
    ] = None,
) -> None:
    """Start both servers, with four day workers and one night worker for each card.

    Examples:

      vgpuctl sim up --dir /tmp/lab --detach && . /tmp/lab/env
      vgpuctl status
      vgpuctl sim up --dir /tmp/lab --scenario two-cards-performance
    """
    from vgpuctl.sim.folder import create_folder  # noqa: PLC0415
    from vgpuctl.sim.lifecycle import refuse_second, start_detached  # noqa: PLC0415

    need_simulators()
    with sim_explained():
        durations, inventory = _world(scenario, hosts, cards, instant)
        folder = create_folder(dir)
        refuse_second(folder)
        if detach:
            start_detached(folder, _arguments(scenario, hosts, cards, instant))
        else:
            _serve(folder, inventory, durations)
            return
    console().print(
        f"A vCenter and a Kubernetes with {count(len(inventory.hosts), 'host')}, "
        f"{count(sum(len(host.cards) for host in inventory.hosts), 'card')} and "
        f"{count(sum(len(group.workers) for group in inventory.groups), 'worker')} answer on loopback.\n\n"
        f"  . {folder}/env              for vgpuctl, kubectl and govc\n"
        f"  vgpuctl sim down --dir {folder}"
    )


def _world(scenario: str | None, hosts: int, cards: int, instant: bool) -> tuple[Durations, Inventory]:
    """Read the durations and the inventory before anything starts, so that a mistake is reported at once."""
    from vgpuctl.sim.inventory import Durations, default_inventory  # noqa: PLC0415

    durations = Durations.instant() if instant else Durations()
    if scenario is None:
        return durations, default_inventory(hosts, cards)
    from vgpuctl.sim.scenarios import find_scenario  # noqa: PLC0415
    from vgpuctl.sim.scenarios.scenario import read_scenario  # noqa: PLC0415

    if (hosts, cards) != (1, 1):
        raise typer.BadParameter("a scenario has its own hosts and cards; leave out --hosts and --cards")
    return durations, read_scenario(find_scenario(scenario), durations)


def _arguments(scenario: str | None, hosts: int, cards: int, instant: bool) -> list[str]:
    from vgpuctl.sim.scenarios import find_scenario  # noqa: PLC0415

    world = ["--hosts", str(hosts), "--cards", str(cards)]
    if scenario is not None:
        world = ["--scenario", str(find_scenario(scenario).resolve())]
    return [*world, *(["--instant"] if instant else [])]


def _serve(folder: Path, inventory: Inventory, durations: Durations) -> None:
    import asyncio  # noqa: PLC0415

    from vgpuctl.sim.server import Simulation, until_signal  # noqa: PLC0415

    console().print(f"Serving until Ctrl-C. In another shell:  . {folder}/env")
    asyncio.run(Simulation(folder, inventory, durations).serve(until_signal))


@app.command()
def scenarios(
    name: Annotated[str | None, typer.Argument(help="Print this scenario's YAML, as a start for your own.")] = None,
) -> None:
    """List the scenarios that come with vgpuctl.

    Examples:

      vgpuctl sim scenarios
      vgpuctl sim scenarios a100-mig > my.yaml
      vgpuctl sim up --dir lab --scenario my.yaml
    """
    from vgpuctl.sim.scenarios import EXAMPLES, find_scenario, summary  # noqa: PLC0415

    if name is not None:
        with sim_explained():
            typer.echo(find_scenario(name).read_text(), nl=False)
        return
    for each, path in EXAMPLES.items():
        console().print(f"{each:<26}{summary(path)}")


@app.command()
def down(dir: DirOption) -> None:
    """Stop the servers of a folder.

    Example:

      vgpuctl sim down --dir lab
    """
    from vgpuctl.sim.lifecycle import stop  # noqa: PLC0415

    with sim_explained():
        ended = stop(folder_of(dir))
    console().print("Stopped." if ended else "No simulators run in this folder.")


@app.command()
def env(dir: DirOption) -> None:
    """Print the variables with which a shell reaches the servers.

    Example:

      eval "$(vgpuctl sim env --dir /tmp/lab)"
    """
    with sim_explained():
        path = folder_of(dir) / "env"
    if not path.exists():
        show_error(f"There is no {path}.", f"Start the servers with: vgpuctl sim up --dir {dir} --detach")
        raise typer.Exit(int(ExitCode.USAGE))
    typer.echo(path.read_text(), nl=False)


@app.command()
def calls(
    dir: DirOption,
    output: OutputOption = Output.TABLE,
    reset: Annotated[bool, typer.Option("--reset", help="Set the counts back to 0 afterwards.")] = False,
) -> None:
    """Show how often clients called each method. Calls of simulated kubelets and controllers do not count.

    Example:

      vgpuctl sim calls --dir lab --reset
    """
    with sim_explained():
        found = controls(dir).calls(reset=reset)
    if output is Output.JSON:
        print_json(found)
        return
    for server, methods in found.items():
        for method, number in methods.items():
            console().print(f"{server:<12}{number:>6}  {method}")


@app.command()
def reset(dir: DirOption) -> None:
    """Set the world, the clock and the durations back, and clear all faults and call counts.

    Addresses, logins and files stay the same. Clients lose their connections and must log in again.

    Example:

      vgpuctl sim reset --dir lab
    """
    with sim_explained():
        controls(dir).reset()
    console().print("The simulated world was set back.")


add_lazily(
    app,
    {
        "fault": ("vgpuctl.cli.simulating.faults:app", "Make calls to the simulators fail on purpose."),
        "set": ("vgpuctl.cli.simulating.set:app", "Change the simulated world while it runs."),
    },
)

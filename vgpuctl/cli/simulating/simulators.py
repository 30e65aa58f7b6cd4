"""vgpuctl sim …: a vCenter and a Kubernetes of one's own, on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.common import console, print_json, show_error
from vgpuctl.cli.lazy import add_lazily, group
from vgpuctl.cli.options import Output, OutputOption
from vgpuctl.cli.simulating.access import DirOption, controls, folder_of, need_simulators, sim_explained
from vgpuctl.model.errors import ExitCode
from vgpuctl.model.phrases import count

if TYPE_CHECKING:
    from vgpuctl.sim.inventory import Durations, Inventory

app = group(add_completion=False, help="A simulated vCenter and Kubernetes on loopback, to try things on.")


@app.command()
def up(
    dir: DirOption,
    detach: Annotated[bool, typer.Option("--detach", help="Return when both servers answer.")] = False,
    instant: Annotated[bool, typer.Option("--instant", help="Suspending, starting and booting take no time.")] = False,
    hosts: Annotated[int, typer.Option(min=1, max=1000, help="How many ESXi hosts.")] = 1,
    cards: Annotated[int, typer.Option(min=1, max=16, help="How many cards in each.")] = 1,
    scenario: Annotated[
        str | None, typer.Option(metavar="FILE|NAME", help="Another world, from YAML; see sim scenarios.")
    ] = None,
) -> None:
    """Start both servers: for each card four day workers with a quarter and one night worker with all of it.

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
        raise typer.BadParameter("a scenario says itself how many hosts and cards there are")
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

    console().print(f"Serving; Ctrl-C ends it. In another shell:  . {folder}/env")
    asyncio.run(Simulation(folder, inventory, durations).serve(until_signal))


@app.command()
def scenarios(
    name: Annotated[str | None, typer.Argument(help="Print this one, to begin one of your own.")] = None,
) -> None:
    """The scenarios that come with vgpuctl.

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
    """End the servers of a folder.

    Example:

      vgpuctl sim down --dir lab
    """
    from vgpuctl.sim.lifecycle import stop  # noqa: PLC0415

    with sim_explained():
        ended = stop(folder_of(dir))
    console().print("Ended." if ended else "Nothing runs there.")


@app.command()
def env(dir: DirOption) -> None:
    """Print the lines that a shell needs to reach the servers.

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
    reset: Annotated[bool, typer.Option("--reset", help="Begin to count anew after this.")] = False,
) -> None:
    """What the clients called, by server and method; the simulated kubelets' and controllers' own left out.

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
    """Begin again: the world, the clock and the durations are as at the start, no fault is left, no call is counted.

    The addresses, the logins and the files stay. Clients find their connections cut, and log in anew.

    Example:

      vgpuctl sim reset --dir lab
    """
    with sim_explained():
        controls(dir).reset()
    console().print("The simulated world begins again.")


add_lazily(
    app,
    {
        "fault": ("vgpuctl.cli.simulating.faults:app", "Let calls go wrong on purpose."),
        "set": ("vgpuctl.cli.simulating.set:app", "Change the simulated world while it runs."),
    },
)

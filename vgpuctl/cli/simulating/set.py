"""vgpuctl sim set …: change the simulated world while it runs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgpuctl.cli.common import console, print_json
from vgpuctl.cli.lazy import group
from vgpuctl.cli.options import Output, OutputOption
from vgpuctl.cli.simulating.access import DirOption, controls, duration_s, sim_explained

if TYPE_CHECKING:
    from vgpuctl.sim.control.controls import Controls

_UNITS = {"store_mib_per_s": " MiB/s", "tasks_per_host": ""}

app = group(add_completion=False, help="Change the simulated world while it runs.")


class ClockAction(StrEnum):
    FREEZE = "freeze"
    RUN = "run"
    ADVANCE = "advance"


class GuestClock(StrEnum):
    TOOLS = "tools"
    CHRONY = "chrony"
    NEVER = "never"


@app.command()
def clock(
    dir: DirOption,
    do: Annotated[
        ClockAction | None, typer.Argument(help="What the clock should do. Without it: show the time.")
    ] = None,
    by: Annotated[str | None, typer.Argument(help="How far to advance the clock, such as 8h.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Freeze the simulated clock, let it run, or advance it. Events on the way happen in order.

    Examples:

      vgpuctl sim set clock freeze
      vgpuctl sim set clock advance 8h
      vgpuctl sim set clock run
    """
    if (do is ClockAction.ADVANCE) != (by is not None):
        raise typer.BadParameter("only advance takes a time, such as 8h")
    leap_s = duration_s(by) if by else 0.0
    with sim_explained():
        found = _clock(controls(dir), do, leap_s)
    if output is Output.JSON:
        print_json(found)
    else:
        console().print(f"{found['now'][:19]}Z, {'frozen' if found['frozen'] else 'running'}")


@app.command()
def durations(
    dir: DirOption,
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=TIME]...", help="The new durations. Without any: show all.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Set how long things take from now on.

    `store` is the datastore's throughput in MiB/s; a suspend or resume then takes as long as the VM's memory needs.
    `graphics-lag` is how late `graphicsInfo` says which VMs are on a card.
    `tasks-per-host` is the number of tasks that one host runs at once.

    Examples:

      vgpuctl sim set durations suspend=30s power-on=10s
      vgpuctl sim set durations store=500
    """
    from vgpuctl.sim.words import duration_name  # noqa: PLC0415

    wanted = dict(_duration_change(change) for change in changes or ())
    with sim_explained():
        found = controls(dir).durations(**wanted)
    if output is Output.JSON:
        print_json(found)
        return
    for name, value in found.items():
        shown = duration_name(name)
        unit = _UNITS.get(name, " s")
        console().print(f"{shown:<16}{'-' if value is None else f'{value:g}{unit}'}")


@app.command()
def vm(
    dir: DirOption,
    name: Annotated[str, typer.Argument(help="The VM's name.")],
    question: Annotated[str | None, typer.Option(help="Ask this question at each power-on. Empty: ask none.")] = None,
    answer: Annotated[
        int | None, typer.Option(help="Answer the question: 0 cancels the power-on, 1 and 2 continue it.")
    ] = None,
    tools: Annotated[
        bool | None, typer.Option("--tools/--no-tools", help="Whether VMware Tools run in the guest.")
    ] = None,
    clock: Annotated[
        GuestClock | None, typer.Option(help="What sets the guest's clock after a resume.", show_default=False)
    ] = None,
) -> None:
    """Let a VM ask a question at power-on, lack VMware Tools, or keep a clock that lags after a resume.

    Examples:

      vgpuctl sim set vm worker-5 --question "Was it moved or copied?"
      vgpuctl sim set vm worker-5 --answer 2
      vgpuctl sim set vm worker-1 --no-tools
      vgpuctl sim set vm worker-1 --clock never
    """
    options = {"question": question, "answer": answer, "tools": tools, "clock": clock}
    changes = {key: value for key, value in options.items() if value is not None}
    with sim_explained():
        _show(controls(dir).vm(name, **changes))


@app.command()
def host(
    dir: DirOption,
    name: Annotated[str, typer.Argument(help="The host's name.")],
    maintenance: Annotated[
        bool | None,
        typer.Option("--maintenance/--no-maintenance", help="In maintenance mode, no VM starts on the host."),
    ] = None,
    crash: Annotated[bool, typer.Option("--crash", help="All VMs that run on the host are off at once.")] = False,
    disconnect: Annotated[
        bool, typer.Option("--disconnect", help="Disconnect it from vCenter; its VMs go on running.")
    ] = False,
    not_responding: Annotated[
        bool, typer.Option("--not-responding", help="It answers vCenter no more; its VMs go on running.")
    ] = False,
    connect: Annotated[bool, typer.Option("--connect", help="Connect it again, after a crash as well.")] = False,
    patch: Annotated[str | None, typer.Option(help="Install this build of ESXi.")] = None,
    vgpu_manager: Annotated[str | None, typer.Option(help="Install this version of NVIDIA's vGPU Manager.")] = None,
) -> None:
    """Let a host crash or lose vCenter, or connect it again. Patch it, or set its maintenance mode, while no VM runs on
    it. A VM with a vGPU that was suspended before a patch does not resume.

    Examples:

      vgpuctl sim set host esx-1 --maintenance
      vgpuctl sim set host esx-1 --crash
      vgpuctl sim set host esx-1 --connect
      vgpuctl sim set host esx-1 --patch 24957456
    """
    acts = {"crash": crash, "disconnect": disconnect, "not-responding": not_responding, "connect": connect}
    changes: list[dict[str, Any]] = [{"act": act} for act, wanted in acts.items() if wanted]
    changes += [] if maintenance is None else [{"maintenance": maintenance}]
    changes += [{"build": patch, "vgpu_manager": vgpu_manager}] if patch or vgpu_manager else []
    if len(changes) != 1:
        raise typer.BadParameter(f"choose one of --maintenance, --{', --'.join(acts)}, --patch")
    with sim_explained():
        _show(controls(dir).host(name, **changes[0]))


@app.command()
def person(
    dir: DirOption,
    act: Annotated[list[str], typer.Argument(metavar="ACT NAME [CHANGE]")],
    in_: Annotated[str | None, typer.Option("--in", help="Do it after this time.")] = None,
) -> None:
    """Act as a person: cordon, uncordon or label a node, delete a node or a pod, start, stop, suspend or move a VM,
    enter-maintenance, evacuate or exit-maintenance a host, or let it crash, disconnect, be not-responding or connect.

    Examples:

      vgpuctl sim set person cordon worker-1
      vgpuctl sim set person label worker-1 vgpu.type=wrong
      vgpuctl sim set person delete-pod default/training-abcde --in 3s
      vgpuctl sim set person power-off worker-2
      vgpuctl sim set person move infra-1 esx-2 --in 10s
    """
    sentence = " ".join(act)
    with sim_explained():
        controls(dir).person(sentence, duration_s(in_) if in_ else 0)
    console().print(f"A person will {sentence} in {in_}." if in_ else f"A person: {sentence}.")


def _clock(of: Controls, do: ClockAction | None, leap_s: float) -> dict[str, Any]:
    match do:
        case ClockAction.FREEZE:
            return of.freeze()
        case ClockAction.RUN:
            return of.run()
        case ClockAction.ADVANCE:
            return of.advance(leap_s)
    return of.clock()


def _show(found: dict[str, Any]) -> None:
    console().print(
        ", ".join(f"{key}: {value!r}" if key == "question" else f"{key}: {value}" for key, value in found.items())
    )


def _duration_change(change: str) -> tuple[str, Any]:
    name, sign, value = change.partition("=")
    if not sign:
        raise typer.BadParameter(f"{change!r} is not NAME=TIME, such as suspend=30s")
    if name == "store":
        return "store_mib_per_s", _number(value.removesuffix("MiB/s")) or None
    if name == "tasks-per-host":
        return "tasks_per_host", _number(value)
    return f"{name.replace('-', '_')}_s", duration_s(value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None

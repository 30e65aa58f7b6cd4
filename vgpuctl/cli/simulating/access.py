"""What the commands for running simulators share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.basics.durations import UNITS, parse_duration
from vgpuctl.cli.common import show_error
from vgpuctl.model.errors import ExitCode

if TYPE_CHECKING:
    from vgpuctl.sim.control.controls import Controls

#: In the simulated world things may also take milliseconds or days.
_UNITS = {**UNITS, "ms": 0.001, "d": 86400}

#: The packages that only the servers need.
SIM_PACKAGES = ("starlette", "uvicorn", "httptools", "trustme")

DirOption = Annotated[
    Path,
    typer.Option(
        "--dir",
        envvar="VGPUCTL_SIM_DIR",
        help="The laboratory's folder. The servers write their addresses and logins into it.",
    ),
]


def controls(dir: Path) -> Controls:
    """Return the control of the simulators that run in this folder."""
    from vgpuctl.sim.control.controls import Controls  # noqa: PLC0415

    return Controls(folder_of(dir))


def folder_of(dir: Path) -> Path:
    """Return the resolved folder; refuse it if another user could have put something there."""
    from vgpuctl.sim.folder import owned_folder  # noqa: PLC0415

    # Decision 0016: the folder holds passwords, a process number and lines that a shell executes.
    return owned_folder(dir)


def need_simulators() -> None:
    """End the command if the extra is not installed: production does not need it."""
    missing = [name for name in SIM_PACKAGES if find_spec(name) is None]
    if missing:
        show_error(
            f"The simulators are not installed: {', '.join(missing)} missing.",
            "Install them with: pip install 'vgpuctl[sim]'",
        )
        raise typer.Exit(int(ExitCode.USAGE))


@contextmanager
def sim_explained() -> Iterator[None]:
    from vgpuctl.sim.errors import SimError  # noqa: PLC0415

    try:
        yield
    except SimError as error:
        show_error(str(error), error.hint)
        raise typer.Exit(int(ExitCode.FAILED)) from None


def duration_s(text: str) -> float:
    """Return the seconds of an option or argument."""
    found = parse_duration(text, _UNITS)
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a duration such as 90s, 10m or 8h")
    return found

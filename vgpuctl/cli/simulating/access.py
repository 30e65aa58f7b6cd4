"""What the commands on running simulators share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from vgpuctl.cli.common import show_error
from vgpuctl.model.errors import ExitCode

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, None: 1}

#: What the servers stand on, and nothing else does.
SIM_PACKAGES = ("starlette", "uvicorn", "httptools", "trustme")

DirOption = Annotated[
    Path,
    typer.Option(
        "--dir",
        envvar="VGPUCTL_SIM_DIR",
        help="The folder that the servers write their access into; its env file tells it to the other commands.",
    ),
]


def folder_of(dir: Path) -> Path:
    """Where it really is; refused if another user could have put something there."""
    from vgpuctl.sim.folder import ours  # noqa: PLC0415

    return ours(dir)


def need_simulators() -> None:
    """Ends the command where the extra was not installed: on production nobody needs it."""
    missing = [name for name in SIM_PACKAGES if find_spec(name) is None]
    if missing:
        show_error(f"The simulators are not installed: no {', '.join(missing)} here.", "pip install 'vgpuctl[sim]'")
        raise typer.Exit(int(ExitCode.USAGE))


@contextmanager
def sim_explained() -> Iterator[None]:
    from vgpuctl.sim.errors import SimError  # noqa: PLC0415

    try:
        yield
    except SimError as error:
        show_error(str(error), error.hint)
        raise typer.Exit(int(ExitCode.FAILED)) from None


def seconds(text: str) -> float:
    """90s, 10m, 8h; a bare number is seconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is no time, such as 90s, 10m or 8h")
    return float(match.group(1)) * _UNITS[match.group(2)]

"""The options that say where files and servers are: the same for every command that needs them, written once."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

ACCESS: dict[str, Any] = {
    "profiles": Annotated[
        Path | None,
        typer.Option(help="The profiles file; default $VGPUCTL_PROFILES, then ./profiles.yaml.", show_default=False),
    ],
    "schedules": Annotated[
        Path | None,
        typer.Option(help="The timetables' folder; default $VGPUCTL_SCHEDULES, then ./schedules.", show_default=False),
    ],
    "kubeconfig": Annotated[
        str | None, typer.Option(help="The kubeconfig; default $KUBECONFIG, then ~/.kube/config.", show_default=False)
    ],
    "context": Annotated[str | None, typer.Option(help="The context of the kubeconfig.", show_default=False)],
    "namespace": Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Where vgpuctl keeps its Lease; default $VGPUCTL_NAMESPACE, then kube-system.",
            show_default=False,
        ),
    ],
}


def with_access(command: Callable[..., None]) -> Callable[..., None]:
    """The command gets all of them as one argument, `flags`."""

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        from vgpuctl.settings import Flags  # noqa: PLC0415

        flags = Flags(**{name: given.pop(name) for name in ACCESS})
        command(flags=flags, **given)

    kind = inspect.Parameter.KEYWORD_ONLY
    hints = _hints(command)
    own = [
        parameter.replace(kind=kind, annotation=hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
        if name != "flags"
    ]
    added = [inspect.Parameter(name, kind, default=None, annotation=hint) for name, hint in ACCESS.items()]
    wrapped.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = hints | ACCESS
    return wrapped


def _hints(command: Callable[..., None]) -> dict[str, Any]:
    """Its annotations as objects; that of `flags` is for the type checker alone."""
    own = {name: hint for name, hint in command.__annotations__.items() if name not in {"flags", "return"}}
    holder = types.SimpleNamespace(__annotations__=own)
    return get_type_hints(holder, globalns=command.__globals__, include_extras=True)

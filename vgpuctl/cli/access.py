"""The options that say where files and servers are, written once for every command that needs them."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def _option(help_text: str, *flags: str) -> Any:
    """Return an option with the help needed at the keyboard. docs/reference/settings.md lists all other sources."""
    return typer.Option(*flags, help=help_text, show_default=False, rich_help_panel="Servers and files")


ACCESS: dict[str, Any] = {
    "profiles": Annotated[Path | None, _option("The profiles file. Default: $VGPUCTL_PROFILES, then ./profiles.yaml.")],
    "schedules": Annotated[
        Path | None, _option("The folder of timetables. Default: $VGPUCTL_SCHEDULES, then ./schedules.")
    ],
    "vcenter": Annotated[
        str | None,
        _option("vCenter's host, host:port or https URL. Default: $VGPUCTL_VCENTER, then $GOVC_URL.", "--vcenter"),
    ],
    "vcenter_user": Annotated[
        str | None,
        _option("The user to log in as. Default: $VGPUCTL_VCENTER_USER, then $GOVC_USERNAME.", "--vcenter-user"),
    ],
    "password_file": Annotated[
        Path | None,
        _option("Read the password from this file, of mode 0600. Without it: $VGPUCTL_PASSWORD.", "--password-file"),
    ],
    "keyring": Annotated[bool | None, _option("Take the password from the system's keyring.", "--keyring")],
    "thumbprint": Annotated[
        str | None,
        _option(
            "Accept only the certificate with this SHA-256 (or SHA-1) thumbprint. No CA is checked.", "--thumbprint"
        ),
    ],
    "ca_file": Annotated[str | None, _option("Trust the CA certificates in this PEM file, too.", "--ca-file")],
    "insecure": Annotated[
        bool | None,
        _option("Do not verify vCenter's certificate. An attacker in between could read the password.", "--insecure"),
    ],
    "kubeconfig": Annotated[
        str | None,
        _option("The kubeconfig. Default: $KUBECONFIG, then ~/.kube/config, then the pod's service account."),
    ],
    "context": Annotated[str | None, _option("Use this context of the kubeconfig.")],
    "namespace": Annotated[
        str | None,
        _option(
            "The namespace of vgpuctl's Lease and history. Default: $VGPUCTL_NAMESPACE, then vgpuctl.",
            "--namespace",
            "-n",
        ),
    ],
    "config": Annotated[
        Path | None,
        _option("The settings file. Default: $VGPUCTL_CONFIG, then ~/.config/vgpuctl/config.yaml.", "--config"),
    ],
}


def with_access(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all access options as one argument, `flags`."""

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
    """Return the command's annotations as objects; only the type checker needs the annotation of `flags`."""
    own = {name: hint for name, hint in command.__annotations__.items() if name not in {"flags", "return"}}
    holder = types.SimpleNamespace(__annotations__=own)
    return get_type_hints(holder, globalns=command.__globals__, include_extras=True)

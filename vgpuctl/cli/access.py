"""The options that say where files and servers are, written once for every command that needs them."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def _option(*words: str, help_text: str) -> Any:
    """Return an option with the help needed at the keyboard. docs/reference/settings.md lists all other sources."""
    return typer.Option(*words, help=help_text, show_default=False, rich_help_panel="Servers and files")


ACCESS: dict[str, Any] = {
    "profiles": Annotated[
        Path | None, _option(help_text="The profiles file; default $VGPUCTL_PROFILES, then ./profiles.yaml.")
    ],
    "schedules": Annotated[
        Path | None, _option(help_text="The timetables' folder; default $VGPUCTL_SCHEDULES, then ./schedules.")
    ],
    "vcenter": Annotated[
        str | None,
        _option(
            "--vcenter", help_text="vCenter's host, host:port or https URL; default $VGPUCTL_VCENTER, then $GOVC_URL."
        ),
    ],
    "vcenter_user": Annotated[
        str | None,
        _option("--vcenter-user", help_text="Who logs in; default $VGPUCTL_VCENTER_USER, then $GOVC_USERNAME."),
    ],
    "password_file": Annotated[
        Path | None,
        _option("--password-file", help_text="A file of mode 0600 with the password; or $VGPUCTL_PASSWORD."),
    ],
    "keyring": Annotated[bool | None, _option("--keyring", help_text="Take the password from the system's keyring.")],
    "thumbprint": Annotated[
        str | None,
        _option(
            "--thumbprint", help_text="vCenter's certificate must be this one, by SHA-256 (or SHA-1); no CA is asked."
        ),
    ],
    "ca_file": Annotated[str | None, _option("--ca-file", help_text="CA certificates to trust as well, in PEM.")],
    "insecure": Annotated[
        bool | None,
        _option("--insecure", help_text="Verify no certificate of vCenter: whoever stands in between sees all."),
    ],
    "kubeconfig": Annotated[
        str | None,
        _option(help_text="The kubeconfig; default $KUBECONFIG, then ~/.kube/config, then the pod's account."),
    ],
    "context": Annotated[str | None, _option(help_text="The context of the kubeconfig.")],
    "namespace": Annotated[
        str | None,
        _option(
            "--namespace",
            "-n",
            help_text="Where vgpuctl keeps its Lease and history; default $VGPUCTL_NAMESPACE, then kube-system.",
        ),
    ],
    "config": Annotated[
        Path | None,
        _option(
            "--config", help_text="The settings file; default $VGPUCTL_CONFIG, then ~/.config/vgpuctl/config.yaml."
        ),
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

"""The options of the daemon's HTTP server, and the server that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from vgpuctl.daemon.serving.daemon_server import DaemonServer
    from vgpuctl.daemon.watched_files import WatchedFiles
    from vgpuctl.settings import Flags

#: What the extra `daemon` brings.
SERVING_PACKAGES = ("starlette", "uvicorn", "prometheus_client")
ListenOption = Annotated[
    str | None,
    typer.Option(metavar="[HOST:]PORT", help="Serve health, status and metrics over HTTP.", show_default=False),
]
CertOption = Annotated[Path | None, typer.Option(help="The certificate of that server, in PEM.", show_default=False)]
KeyOption = Annotated[Path | None, typer.Option(help="The certificate's key, in PEM.", show_default=False)]
TokenOption = Annotated[
    Path | None, typer.Option(help="A file with the bearer token that readers need.", show_default=False)
]
OpenlyOption = Annotated[
    bool | None,
    typer.Option("--listen-openly", help="Let other machines read without a token or TLS.", show_default=False),
]


def server_for(
    flags: Flags, given: Mapping[str, object], watched: WatchedFiles, say: Callable[[str], None]
) -> DaemonServer | None:
    """Return the HTTP server that is asked for, which already listens; None if none is."""
    from vgpuctl.settings.listening import listening  # noqa: PLC0415

    address = listening(flags, given)
    if address is None:
        return None
    if missing := [name for name in SERVING_PACKAGES if find_spec(name) is None]:
        raise UsageError(
            f"The HTTP server is not installed: {', '.join(missing)} missing.",
            hint="Install it with: pip install 'vgpuctl[daemon]'",
        )
    from vgpuctl.daemon.serving.daemon_server import DaemonServer  # noqa: PLC0415

    return DaemonServer(address, watched, say)

"""The command line: one file a command. Parse, call, print, exit code."""

from __future__ import annotations

import sys

from vgpuctl import __version__


def main() -> None:
    """The console script. Asking for the version needs nothing else of the program."""
    if sys.argv[1:2] == ["--version"]:
        print(f"vgpuctl {__version__}")
        return
    from vgpuctl.cli.app import run  # noqa: PLC0415

    run()

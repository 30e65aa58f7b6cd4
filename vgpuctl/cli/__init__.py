"""The command line: one file per command. Parse, call, print, exit code."""

from __future__ import annotations

import atexit
import gc
import sys

from vgpuctl import __version__
from vgpuctl.cli import output


def main() -> None:
    """The console script. `--version` loads nothing else of the program."""
    output.guard()
    try:
        try:
            _run()
        finally:
            # Python buffers: a full disk shows here, and not in print.
            sys.stdout.flush()
    except OSError:
        if output.failure() is None:
            raise
        if complaint_text := output.complaint():
            print(f"Error: {complaint_text}", file=sys.stderr)
        sys.exit(1)


def _run() -> None:
    if sys.argv[1:2] == ["--version"]:
        print(f"vgpuctl {__version__}")
        return
    look_for_garbage_seldom()
    from vgpuctl.cli.app import run  # noqa: PLC0415

    run()


def look_for_garbage_seldom() -> None:
    """Collect garbage less often, and not at the end.

    Loaded code is not garbage. Searching it as it grows and once more at the end takes a fifth of a short command's
    time.
    """
    # Measured (decision 0007): both together took a fifth of a short command's processor time.
    gc.set_threshold(100_000)
    atexit.register(gc.freeze)

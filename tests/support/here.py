"""A command of vgpuctl in this process: no fork, for tests of what it says and writes."""

from __future__ import annotations

import contextlib
import io
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from unittest.mock import patch

from vgpuctl.cli.app import app
from vgpuctl.cli.common import STOP_SIGNALS
from vgpuctl.cli.lazy import build_command


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


def vgpuctl(env: Mapping[str, str], *words: str) -> Said:
    """Run a command with these variables only. The handlers of this process's signals stay as they were."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    given = {"NO_COLOR": "1", "COLUMNS": "200", **env}
    try:
        with (
            patch.dict(os.environ, given, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            build_command(app)(list(words))
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return Said(code, out.getvalue(), err.getvalue())

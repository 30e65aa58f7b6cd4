"""The real command, ended with SIGKILL right after its n-th write: `python -m tests.support.killed N WORDS…`."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from vgpuctl.cli import main
from vgpuctl.kube.client import Client
from vgpuctl.vsphere import actions


def kill_after(nth: int) -> None:
    """Every write goes through one of these; it counts when it was answered. Those of the Lease and the journal, in
    threads of their own, are no points."""
    written = itertools.count(1)

    def counting(write: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            answer = write(*arguments, **options)
            if threading.current_thread().name not in {"acting-lease", "journal"} and next(written) >= nth:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return wrapped

    for name in ("post", "put", "patch"):
        setattr(Client, name, counting(getattr(Client, name)))
    actions.send = counting(actions.send)


if __name__ == "__main__":
    kill_after(int(sys.argv[1]))
    sys.argv = ["vgpuctl", *sys.argv[2:]]
    main()

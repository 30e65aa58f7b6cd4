"""The real command, ended with SIGKILL right after its n-th write: called in its process before it begins."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from vgpuctl.kube.client import Client
from vgpuctl.vsphere import actions

ASIDE = {"acting-lease", "leading-lease", "journal"}
#: POSTs that change nothing.
QUESTIONS = {
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
}
WITHIN_S = 10.0


def kill_after(nth: str, recorded: str = "") -> None:
    """Every write goes through one of these; it counts when it was answered. Those of the Lease and the journal, in
    threads of their own, are no points. With `recorded` the journal has its first entry by then."""
    written, journal = itertools.count(1), threading.Event()

    def counting(write: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            answer = write(*arguments, **options)
            thread = threading.current_thread().name
            if thread == "journal":
                journal.set()
            if thread not in ASIDE and QUESTIONS.isdisjoint(arguments[:2]) and next(written) >= int(nth):
                if recorded:
                    journal.wait(WITHIN_S)
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return wrapped

    for name in ("post", "put", "patch"):
        setattr(Client, name, counting(getattr(Client, name)))
    actions.send = counting(actions.send)

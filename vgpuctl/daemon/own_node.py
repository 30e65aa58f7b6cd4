"""Where this daemon runs itself: never on a worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from vgpuctl.model.errors import UsageError
from vgpuctl.model.fleet import Fleet

#: `vgpuctl deploy` sets it: with the downward API in a pod, with the host's name in a systemd unit.
VARIABLE = "NODE_NAME"


def refuse_on_worker(fleet: Callable[[], Fleet], env: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError if this process runs on a worker. It would suspend itself in the middle of a switch."""
    node = env.get(VARIABLE, "")
    # Most daemons run outside, and need no picture for this after each round.
    worker = fleet().with_this_node(node) if node else None
    if worker is not None:
        raise UsageError(
            f"This daemon runs on {node}, which is the worker {worker.name}: a shift would put it to sleep itself.",
            hint="Run it elsewhere. The manifests of `vgpuctl deploy` keep it off nodes with the labels of workers. "
            "To set these: vgpuctl label-nodes",
        )

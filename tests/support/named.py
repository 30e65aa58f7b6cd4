"""Called in a vgpuctl process before its command: both servers then see which process sends a request."""

from __future__ import annotations

import os
from typing import Any


def named_after_its_process() -> None:
    from vgpuctl.kube import client  # noqa: PLC0415
    from vgpuctl.vsphere import stub  # noqa: PLC0415

    # Kubernetes: the manager is the part before the slash, so it stays as it is.
    name = f"vgpuctl/{os.getpid()}"
    client.AGENT = name
    before = stub.Stub.__init__

    def init(self: Any, *arguments: Any, **options: Any) -> None:
        before(self, *arguments, **options)
        self._customHeaders["User-Agent"] = name

    stub.Stub.__init__ = init  # type: ignore[method-assign]

"""Virtual time for Leases: a wait passes at once, and the clock shows that it did."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vgpuctl.kube import leadership, lease, lease_keeper, leases


class LeaseTime:
    """The clock of one thread that holds or waits for Leases."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        for module in (lease, lease_keeper, leases, leadership):
            patch.setattr(module, "uptime_s", lambda: self.now_s)
        patch.setattr(lease, "sleep", self._sleep)

    def _sleep(self, duration_s: float, stop: Callable[[], bool] | None = None) -> None:
        if stop is None or not stop():
            self.now_s += duration_s

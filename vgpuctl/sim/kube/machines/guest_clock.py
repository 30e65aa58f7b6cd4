"""The wall clock of a guest: it stands still while the VM is suspended, and lags until a program sets it."""

from __future__ import annotations

from datetime import datetime, timedelta

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import CHRONY, TOOLS, Durations, VmSpec


class GuestClock:
    """The world's time, less the suspends that no program has made up for yet."""

    __slots__ = ("_clock", "_stopped_s", "lag_s")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stopped_s: float | None = None
        self.lag_s = 0.0

    def utc(self) -> datetime:
        return self._clock.utc() - timedelta(seconds=self.lag_s)

    def stop(self) -> None:
        if self._stopped_s is None:
            self._stopped_s = self._clock.now_s

    def go_on(self) -> None:
        """Go on from where it stood."""
        if self._stopped_s is not None:
            self.lag_s += self._clock.now_s - self._stopped_s
            self._stopped_s = None

    def set(self) -> None:
        """Set it to the world's time, as a boot does from the hardware's clock."""
        self.lag_s, self._stopped_s = 0.0, None


def set_after_s(how: str, vm: VmSpec, durations: Durations) -> float | None:
    """Return how long after a resume the VM's clock is set; None if no program sets it."""
    # vSphere: VMware Tools step the clock forward on resume, unless a hardened template switches that off.
    if how == TOOLS:
        return durations.tools_clock_s if vm.tools else None
    # chrony: it steps a running clock only with `makestep 1 -1`, and only after its next measurement.
    return durations.chrony_clock_s if how == CHRONY else None

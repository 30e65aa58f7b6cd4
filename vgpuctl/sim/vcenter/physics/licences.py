"""The pool of vGPU licences that guests lease. It is NVIDIA's, not vSphere's; only a probe in a guest sees it."""

from __future__ import annotations

from functools import partial

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Licences
from vgpuctl.sim.vcenter.physics.records import Power, Vm

#: NVIDIA: the licence status that `nvidia-smi -q` shows in a guest.
LICENSED, UNLICENSED = "Licensed", "Unlicensed"


class LicencePool:
    """A VM with vGPUs takes one seat, however many they are (a simplification). Without a pool nothing is counted."""

    def __init__(self, clock: Clock, pool: Licences | None) -> None:
        self._clock = clock
        self._pool = pool
        # The seats, by VM. None: its guest runs and renews the lease; else when the lease expires.
        self._expires_s: dict[str, float | None] = {}
        self._waiting: list[str] = []

    def status(self, vm: Vm) -> str:
        """Return what a probe in the guest would say; "" if it could say nothing."""
        if self._pool is None or not vm.vgpus or vm.power is not Power.ON:
            return ""
        return LICENSED if vm.moid in self._expires_s else UNLICENSED

    def lease(self, vm: Vm) -> None:
        """Lease a seat when the guest boots or goes on. A guest without one asks until it gets one."""
        if self._pool and vm.vgpus:
            self._waiting.append(vm.moid)
            self._serve()

    def keep(self, vm: Vm) -> None:
        """Keep the seat until the lease expires: a VM that was suspended or switched off cannot return it."""
        if vm.moid in self._waiting:
            self._waiting.remove(vm.moid)
        if self._pool and self._expires_s.get(vm.moid, 0.0) is None:
            expires_s = self._expires_s[vm.moid] = self._clock.now_s + self._pool.lease_s
            self._clock.after(self._pool.lease_s, partial(self._expire, vm.moid, expires_s))

    def give_back(self, vm: Vm) -> None:
        """Return the seat: a guest that shuts down does so."""
        if self._pool:
            self.keep(vm)
            self._expires_s.pop(vm.moid, None)
            self._serve()

    def _expire(self, moid: str, expires_s: float) -> None:
        if self._expires_s.get(moid) == expires_s:
            del self._expires_s[moid]
            self._serve()

    def _serve(self) -> None:
        """Give free seats to the guests that wait. A VM that still has its seat goes on with it."""
        assert self._pool
        for moid in tuple(self._waiting):
            if moid in self._expires_s or len(self._expires_s) < self._pool.seats:
                self._waiting.remove(moid)
                self._expires_s[moid] = None

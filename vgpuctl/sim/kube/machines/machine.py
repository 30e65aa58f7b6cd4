"""The machine inside a VM: it boots, stands still while the VM is suspended, and is lost at power-off."""

from __future__ import annotations

from collections.abc import Callable

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.kube.machines.guesttime import GuestTime


class Machine:
    """A guest's operating system. VMs without a node have only this."""

    def __init__(self, clock: Clock, durations: Durations) -> None:
        self.guest_up = False
        self.powered = False
        self.exists = True
        self._durations = durations
        self._time = GuestTime(clock)

    @property
    def frozen(self) -> bool:
        return self._time.frozen

    @property
    def running(self) -> bool:
        return self.guest_up and not self.frozen

    def boot(self, gpus: int) -> None:
        self.halt()
        self.powered = self.exists = True
        self._time.after(self._durations.guest_boot_s, self._guest_is_up)

    def freeze(self) -> None:
        self.powered = False
        self._time.freeze()

    def thaw(self) -> None:
        """Everything goes on from where it was."""
        self.powered = True
        if self.frozen:
            self._time.thaw()

    def halt(self) -> None:
        self._time.clear()
        self.guest_up = self.powered = False

    def shut_down(self, then: Callable[[], None]) -> None:
        """Shut the guest down after `guest_shutdown_s`, unless the VM is powered off before."""

        def down() -> None:
            self.halt()
            then()

        # vSphere: a guest that was asked to shut down cannot be asked to stay up. A suspend only delays it.
        self._time.after(self._durations.guest_shutdown_s, down)

    def start_now(self, gpus: int) -> None:
        """Mark the guest as up, for a VM that is on from the beginning."""
        self.guest_up = self.powered = True

    def sleep_now(self, gpus: int) -> None:
        """Mark the guest as up and frozen, for a VM that is suspended from the beginning."""
        self.guest_up = True
        self.freeze()

    def _guest_is_up(self) -> None:
        self.guest_up = True

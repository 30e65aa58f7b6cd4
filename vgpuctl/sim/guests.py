"""The interface between the two halves of the world: what a VM's power does to the machine inside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Guests(Protocol):
    """The simulated vCenter calls it after each change of power. The simulated Kubernetes implements it."""

    def boot(self, vm: str, gpus: int) -> None:
        """The VM was powered on from off: its guest boots, then its kubelet starts. `gpus`: how many vGPUs
        the VM has.
        """

    def freeze(self, vm: str) -> None:
        """The VM was suspended: nothing inside moves."""

    def thaw(self, vm: str) -> None:
        """The VM was resumed: everything inside goes on from where it was."""

    def halt(self, vm: str) -> None:
        """The VM was powered off: what ran inside is lost."""

    def remove(self, vm: str) -> None:
        """The VM was destroyed."""

    def shut_down(self, vm: str, then: Callable[[], None]) -> None:
        """Shut the guest down in an orderly way; call `then` when it is down."""

    def running(self, vm: str) -> bool:
        """Return True if the guest's operating system is up, so that VMware Tools answer."""

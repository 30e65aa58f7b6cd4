"""The seam between the two halves of the world: what a VM's power does to the machine inside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Guests(Protocol):
    """Told by the simulated vCenter after each change of power; answered by the simulated Kubernetes."""

    def boot(self, vm: str, gpus: int) -> None:
        """Powered on from off: the guest boots, then its kubelet starts. `gpus`: vGPUs that the VM has."""

    def freeze(self, vm: str) -> None:
        """Suspended: nothing inside moves any more."""

    def thaw(self, vm: str) -> None:
        """Resumed: everything inside goes on where it was."""

    def halt(self, vm: str) -> None:
        """Powered off: what ran inside is gone."""

    def shut_down(self, vm: str, then: Callable[[], None]) -> None:
        """Asked to shut down in an orderly way; calls `then` when the guest is down."""

    def running(self, vm: str) -> bool:
        """Is the guest's operating system up (VMware Tools answer)?"""

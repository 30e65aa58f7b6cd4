"""The addresses of a machine with a kubelet, and of its pods."""

from __future__ import annotations

from dataclasses import dataclass

from vgpuctl.sim.inventory import VmSpec


@dataclass(frozen=True, slots=True)
class MachineAddress:
    """A kubelet's VM, its address, and the addresses of its pods."""

    vm: VmSpec
    number: int

    @property
    def address(self) -> str:
        return f"10.1.{self.number // 250}.{self.number % 250 + 1}"

    def pod_address(self, count: int) -> str:
        return f"10.{64 + self.number // 256}.{self.number % 256}.{count % 254 + 1}"

"""Freezing and thawing machines: VMs of our world, or the processes of real kubelets."""

from __future__ import annotations

from tests.peers.control_plane import ControlPlane
from tests.peers.ours import OurServers


class OurMachines:
    def __init__(self, servers: OurServers) -> None:
        self._servers = servers

    def freeze(self, node: str) -> None:
        self._servers.within(lambda: self._servers.kubernetes.freeze(node))

    def thaw(self, node: str) -> None:
        self._servers.within(lambda: self._servers.kubernetes.thaw(node))

    def compact(self) -> None:
        self._servers.within(self._servers.kubernetes.store.forget_log)


class RealMachines:
    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def freeze(self, node: str) -> None:
        self._plane.kubelets[node].freeze()

    def thaw(self, node: str) -> None:
        self._plane.kubelets[node].thaw()

    def compact(self) -> None:
        self._plane.compact()

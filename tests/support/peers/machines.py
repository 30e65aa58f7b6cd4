"""Freezing and thawing machines: VMs of our world, or the processes of real kubelets."""

from __future__ import annotations

import threading

from pyVmomi import vim

from tests.support.peers.control_plane import ControlPlane
from tests.support.peers.vcenters import CALL_WITHIN_S, Client, Vcenter, through_view
from tests.support.vcenter import PC
from vgpuctl.testing import Estate


class OurMachines:
    def __init__(self, estate: Estate) -> None:
        self._estate = estate

    def freeze(self, node: str) -> None:
        self._estate.within(lambda world: world.kubernetes.freeze(node))

    def thaw(self, node: str) -> None:
        self._estate.within(lambda world: world.kubernetes.thaw(node))

    def compact(self) -> None:
        self._estate.within(lambda world: world.kubernetes.store.compact())


class RealMachines:
    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def freeze(self, node: str) -> None:
        self._plane.kubelets[node].freeze()

    def thaw(self, node: str) -> None:
        self._plane.kubelets[node].thaw()

    def compact(self) -> None:
        self._plane.compact()


class PoweredMachines:
    """Real kubelets as the insides of a vCenter's VMs: on is running, suspended is frozen, off is ended."""

    def __init__(self, vcenter: Vcenter, plane: ControlPlane) -> None:
        self._client, self._plane = Client(vcenter), plane
        self._collector = self._client.collector.CreatePropertyCollector()
        paths = {vim.VirtualMachine: ["name", "runtime.powerState"]}
        self._collector.CreateFilter(through_view(self._client.view(vim.VirtualMachine), paths), False)
        self._names: dict[str, str] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> PoweredMachines:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(CALL_WITHIN_S)
        self._client.close()

    def _follow(self) -> None:
        version = ""
        while not self._ended.is_set():
            update = self._collector.WaitForUpdatesEx(version, PC.WaitOptions(maxWaitSeconds=1))
            version = update.version if update else version
            for one in (each for part in (update.filterSet if update else ()) for each in part.objectSet):
                values = {change.name: change.val for change in one.changeSet}
                name = self._names.setdefault(one.obj._moId, values.get("name", ""))
                if name.startswith("worker") and "runtime.powerState" in values:
                    self._obey(name, values["runtime.powerState"])

    def _obey(self, name: str, power: str) -> None:
        runs = name in self._plane.kubelets
        if power == "poweredOn" and not runs:
            self._plane.start_kubelet(name)
        elif power == "poweredOn":
            self._plane.kubelets[name].thaw()
        elif power == "suspended" and runs:
            self._plane.kubelets[name].freeze()
        elif power == "poweredOff" and runs:
            self._plane.end_kubelet(name)

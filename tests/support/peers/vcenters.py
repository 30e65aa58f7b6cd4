"""A vCenter as the contract sees it: pyVmomi against an address. Ours or vcsim."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim, vmodl
from pyVmomi.SoapAdapter import SoapStubAdapter

from tests.support.peers.processes import Process, free_port, until
from tests.support.vcenter import PC
from vgpuctl.sim.inventory import Durations, Inventory
from vgpuctl.testing import Estate
from vgpuctl.vsphere.session import Session, VcenterSettings
from vgpuctl.vsphere.tls import Trust

#: The same on both servers: long enough to be seen under way, short enough to wait for.
TASK_S = 0.4
#: A server that hangs fails the test, and does not hold it. Longer than the longest wait for updates.
CALL_WITHIN_S = 20


@dataclass(frozen=True, kw_only=True)
class Vcenter:
    """`name`: `ours` or `vcsim`. Both have worker-1 … worker-5, all off, and esx-1 with a V100 of 16 GB."""

    name: str
    port: int
    user: str
    password: str
    ca: Path

    def holds_not(self, server: str, reason: str) -> None:
        if self.name == server:
            pytest.skip(f"{server}: {reason}")

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca))

    def connect(self, password: str | None = None) -> Any:
        return SmartConnect(
            host="127.0.0.1",
            port=self.port,
            user=self.user,
            pwd=self.password if password is None else password,
            sslContext=self.trust(),
            httpConnectionTimeout=CALL_WITHIN_S,
        )

    def stub(self) -> Any:
        """A way in without a login."""
        return SoapStubAdapter(
            host="127.0.0.1", port=self.port, sslContext=self.trust(), version="vim.version.version9"
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            "GOVC_URL": f"https://127.0.0.1:{self.port}/sdk",
            "GOVC_USERNAME": self.user,
            "GOVC_PASSWORD": self.password,
            "GOVC_TLS_CA_CERTS": str(self.ca),
        }


class Client:
    """One session, and the few words that the contract is told in."""

    def __init__(self, vcenter: Vcenter) -> None:
        self.instance = vcenter.connect()
        self.content = self.instance.RetrieveContent()
        self.collector = self.content.propertyCollector

    def close(self) -> None:
        try:
            Disconnect(self.instance)
        except (vim.fault.NotAuthenticated, vmodl.fault.ManagedObjectNotFound):
            return

    def as_at_the_beginning(self) -> None:
        """All workers off, and none with a vGPU."""
        workers = [vm for vm in self.view(vim.VirtualMachine).view if self.read(vm, "name").startswith("worker")]
        self.ok(*(vm.PowerOff() for vm in workers if self.power(vm) != "poweredOff"))
        bare = [(vm, self.vgpus(vm)) for vm in workers]
        self.ok(*(vm.Reconfigure(detach(devices)) for vm, devices in bare if devices))

    def view(self, *kinds: Any) -> Any:
        return self.content.viewManager.CreateContainerView(self.content.rootFolder, list(kinds), True)

    def vm(self, name: str) -> Any:
        return next(vm for vm in self.view(vim.VirtualMachine).view if vm.name == name)

    def power(self, vm: Any) -> str:
        return str(self.read(vm, "runtime.powerState"))

    def read(self, thing: Any, path: str) -> Any:
        """One leaf; None where it is unset."""
        spec = PC.FilterSpec(
            propSet=[PC.PropertySpec(type=type(thing), pathSet=[path])], objectSet=[PC.ObjectSpec(obj=thing)]
        )
        (found,) = self.collector.RetrieveProperties([spec])
        return found.propSet[0].val if found.propSet else None

    def vgpus(self, vm: Any) -> list[Any]:
        kind = vim.vm.device.VirtualPCIPassthrough
        return [device for device in self.read(vm, "config.hardware.device") if isinstance(device, kind)]

    def done(self, task: Any, within_s: float = 20.0) -> Any:
        """The task's info once it has ended, whichever way."""
        until(lambda: self.read(task, "info.state") in ("success", "error"), within_s, what=f"{task} ends")
        return task.info

    def ok(self, *tasks: Any) -> None:
        for task in tasks:
            info = self.done(task)
            assert info.state == "success", info.error

    def fault(self, task: Any) -> Any:
        info = self.done(task)
        assert info.state == "error"
        return info.error


@contextmanager
def session_at(vcenter: Vcenter) -> Iterator[Session]:
    """The product's own session."""
    settings = VcenterSettings(
        host="127.0.0.1",
        port=vcenter.port,
        user=vcenter.user,
        password=vcenter.password,
        trust=Trust(ca_file=str(vcenter.ca)),
    )
    session = Session(settings).open()
    try:
        yield session
    finally:
        session.close()


def through_view(view: Any, paths: dict[Any, list[str]], tasks: list[str] | None = None) -> Any:
    """A filter over the members of a view, and over the tasks of its VMs where their paths are given."""
    to_tasks = [PC.TraversalSpec(name="tasks", type=vim.VirtualMachine, path="recentTask", skip=False)]
    walk = PC.TraversalSpec(name="view", type=type(view), path="view", skip=False, selectSet=to_tasks if tasks else [])
    wanted = {**paths, **({vim.Task: tasks} if tasks else {})}
    return PC.FilterSpec(
        propSet=[PC.PropertySpec(type=kind, pathSet=leaves) for kind, leaves in wanted.items()],
        objectSet=[PC.ObjectSpec(obj=view, skip=True, selectSet=[walk])],
    )


def detach(devices: list[Any]) -> Any:
    return vim.vm.ConfigSpec(
        deviceChange=[vim.vm.device.VirtualDeviceSpec(operation="remove", device=device) for device in devices]
    )


@contextmanager
def ours(folder: Path, inventory: Inventory, durations: Durations | None = None) -> Iterator[Vcenter]:
    """Ours, as users of vgpuctl get it."""
    with Estate(folder, inventory, durations=durations) as estate:
        login = estate.logins
        yield Vcenter(name="ours", port=estate.vcenter_port, user=login.user, password=login.password, ca=estate.ca)


@contextmanager
def vcsim(folder: Path, password: str) -> Iterator[Vcenter]:
    """The real vcsim; its certificate signs itself and so is what to trust."""
    port = free_port()
    delays = ",".join(f"{name}:{TASK_S * 1000:.0f}" for name in ("PowerOn", "PowerOff", "Suspend"))
    process = Process(
        "vcsim",
        f"-listen=127.0.0.1:{port}",
        f"-task-delay={delays}",
        log=folder / "vcsim.log",
        env={"VCSIM_PASSWORD": password},
    )
    try:
        until(lambda: process.runs() and "listening" in process.log.read_text(), what="vcsim listens")
        ca = folder / "vcsim.pem"
        ca.write_text(ssl.get_server_certificate(("127.0.0.1", port)))
        yield Vcenter(name="vcsim", port=port, user="user", password=password, ca=ca)
    finally:
        process.end()

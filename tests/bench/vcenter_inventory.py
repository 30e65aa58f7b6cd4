"""How quick the simulated vCenter is with many VMs: `python -m tests.bench.vcenter_inventory 10000`.

As pyVmomi sees it. It prints figures and asserts nothing: they depend on the machine, and most of the time is the
client's own parser.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import ssl
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import trustme
import uvicorn
from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim

from tests.contract.test_vcenter_wire import PC, QuietGuests, content_of, view_filter
from vgpuctl.sim.calls import Calls
from vgpuctl.sim.clock import Clock
from vgpuctl.sim.inventory import Durations, HostSpec, Inventory, Shift, VmSpec, v100
from vgpuctl.sim.vcenter.app import vcenter_app
from vgpuctl.sim.vcenter.estate import Estate

LEAVES = ["name", "runtime.powerState", "runtime.host", "config.uuid"]
WORKERS, HOSTS = 500, 100


def inventory(count: int) -> Inventory:
    hosts = tuple(HostSpec(f"esx-{n}", tuple(v100(i) for i in range(4))) for n in range(HOSTS))
    workers = [VmSpec(f"worker-{n}", f"esx-{n % HOSTS}", vgpus=("grid_v100-4q",)) for n in range(WORKERS)]
    plain = [VmSpec(f"plain-{n}", f"esx-{n % HOSTS}", powered_on=n % 2 == 0) for n in range(count - WORKERS)]
    nobody = Shift("none", "grid_v100-4q", ())
    return Inventory("gpu", hosts, (*workers, *plain), nobody, nobody)


def serve(count: int, folder: Path, control: Connection) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    estate = Estate(Clock(datetime.now(UTC)), inventory(count), Durations.instant(), QuietGuests())
    app = vcenter_app(estate, Calls(), "user", "password")
    config = uvicorn.Config(
        app, port=0, ssl_certfile=folder / "server.pem", log_level="error", lifespan="off", timeout_keep_alive=75
    )

    async def run() -> None:
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        control.send(server.servers[0].sockets[0].getsockname()[1])
        await asyncio.get_running_loop().run_in_executor(None, control.recv)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        print(f"{'server in all':24} {usage.ru_utime + usage.ru_stime:6.2f} s CPU, {usage.ru_maxrss >> 10} MiB")
        server.should_exit = True
        await serving

    asyncio.run(run())


def timed(name: str, action: Callable[[], Any]) -> Any:
    began = time.perf_counter()
    answer = action()
    print(f"{name:24} {time.perf_counter() - began:6.3f} s")
    return answer


def measure(client: Any) -> None:
    content = content_of(client)
    everything = {
        "four leaves": LEAVES,
        "four leaves again": LEAVES,
        "devices": ["config.hardware.device"],
        "devices again": ["config.hardware.device"],
    }
    for name, paths in everything.items():
        spec = view_filter(content, {vim.VirtualMachine: paths})
        timed(name, lambda spec=spec: content.propertyCollector.RetrievePropertiesEx([spec], PC.RetrieveOptions()))
    collector = content.propertyCollector.CreatePropertyCollector()
    collector.CreateFilter(
        view_filter(content, {vim.VirtualMachine: ["name", "runtime.powerState", "recentTask"]}), False
    )
    now = PC.WaitOptions(maxWaitSeconds=10)
    first = timed("first update", lambda: collector.WaitForUpdatesEx("", now))
    content.searchIndex.FindByInventoryPath("dc/vm/worker-1").PowerOn()
    timed("one update of one VM", lambda: collector.WaitForUpdatesEx(first.version, PC.WaitOptions(maxWaitSeconds=0)))


def main() -> None:
    ours, theirs = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(count, folder, theirs), daemon=True)
        timed(f"start with {count} VMs", lambda: (server.start(), ours.poll(60)))
        trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        client = SmartConnect(host="127.0.0.1", port=ours.recv(), user="user", pwd="password", sslContext=trust)
        measure(client)
        Disconnect(client)
        ours.send("enough")
        server.join()


if __name__ == "__main__":
    main()

"""A process of one thread in which all of vgpuctl is imported. It forks itself for each command that it is asked for.

A command's own start is four fifths of what it costs. Everything else stays real: a process of its own with its own
descriptors, signals, exit code and end. `tests/support/forked.py` is the other side.

python -m tests.support.zygote DESCRIPTOR
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import sys
import time
from typing import Any

#: What the edges load only when they are used.
LATER = (
    "apscheduler.schedulers.background",
    "kubernetes.client.configuration",
    "kubernetes.client.rest",
    "kubernetes.config.incluster_config",
    "kubernetes.config.kube_config",
    "pyVmomi.SoapAdapter",
    "rich.live",
    "rich.spinner",
    "trustme",
    "urllib3.exceptions",
    "uvicorn",
)
LENGTH = struct.Struct("!I")
STREAMS = 3


def send(channel: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    data = json.dumps(message).encode()
    packed = LENGTH.pack(len(data)) + data
    sent = socket.send_fds(channel, [packed], list(descriptors)) if descriptors else 0
    channel.sendall(packed[sent:])


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """A message and the descriptors that came with it; None at the end."""
    head, descriptors, _, _ = socket.recv_fds(channel, LENGTH.size, STREAMS)
    if not head:
        return None
    data = _exactly(channel, LENGTH.unpack(head + _exactly(channel, LENGTH.size - len(head)))[0])
    message: dict[str, Any] = json.loads(data)
    return message, descriptors


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        more = channel.recv(size - len(parts))
        if not more:
            raise EOFError
        parts += more
    return parts


def preload() -> None:
    import vgpuctl  # noqa: PLC0415

    for module in pkgutil.walk_packages(vgpuctl.__path__, "vgpuctl."):
        # What no command imports: pytest above all.
        if not module.name.endswith("__main__") and not module.name.startswith("vgpuctl.testing"):
            importlib.import_module(module.name)
    for name in LATER:
        importlib.import_module(name)
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    # pyVmomi makes its types when they are first named.
    _ = vim.VirtualMachine, vim.HostSystem, vim.ClusterComputeResource, vim.Task, vmodl.query.PropertyCollector
    gc.collect()
    gc.freeze()


def serve(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """In the process that was asked: None once nobody asks any more. In a forked one: what it is to do."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    heard: list[socket.socket | int] = [channel, read]
    while True:
        ready, _, _ = select.select(heard, [], [])
        if read in ready:
            os.read(read, 4096)
            _report_ends(channel)
        if channel not in ready:
            continue
        asked = receive(channel)
        if asked is None:
            return None
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (read, write, channel.detach()):
                os.close(descriptor)
            return asked
        for descriptor in asked[1]:
            os.close(descriptor)
        send(channel, {"pid": pid})


def _report_ends(channel: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        send(channel, {"ended": pid, "code": os.waitstatus_to_exitcode(status)})


def become(asked: dict[str, Any], descriptors: list[int]) -> None:
    """The command that was asked for, as if it had been started anew."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        if descriptor >= STREAMS:
            os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = _writer(1), _writer(2, line_buffered=True)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    if asked["cwd"]:
        os.chdir(asked["cwd"])
    sys.argv = asked["argv"]
    # By this click tells `python -m package` from a script, and calls itself so in its errors.
    sys.modules["__main__"].__package__ = None


def _writer(number: int, *, line_buffered: bool = False) -> io.TextIOWrapper:
    raw = open(number, "wb", closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(raw, encoding="utf-8", line_buffering=line_buffered or os.isatty(number))


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload()
    send(channel, {"ready": os.getpid()})
    asked = serve(channel)
    if asked is None:
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Whoever runs the tests under nohup has them ignore it, and a command would honour that.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    become(*asked)
    if first := asked[0]["first"]:
        module, function, *arguments = first
        getattr(importlib.import_module(module), function)(*arguments)
    from vgpuctl.cli import main as command  # noqa: PLC0415

    command()


if __name__ == "__main__":
    main()

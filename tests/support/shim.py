"""A `vgpuctl` for shells: a small program whose command is forked from the prepared process."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.forked import Command, zygote
from tests.support.zygote import receive

#: Isolated and without site packages, Python starts in a tenth of the time.
PROGRAM = """\
#!{python} -IS
import json, os, socket, struct, sys
channel = socket.socket(socket.AF_UNIX)
channel.connect({address!r})
data = json.dumps({{"words": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}}).encode()
socket.send_fds(channel, [struct.pack("!I", len(data))], [0, 1, 2])
channel.sendall(data)
code = int(channel.recv(16))
os._exit(code if code >= 0 else 128 - code)
"""
LOOK_EVERY_S = 0.02


@contextmanager
def shim(folder: Path) -> Iterator[Path]:
    """The folder to put into PATH. Signals to the small program do not reach the command."""
    folder.mkdir()
    address = str(folder / "channel")
    program = folder / "vgpuctl"
    program.write_text(PROGRAM.format(python=sys.executable, address=address))
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        accepting = threading.Thread(target=_accept, args=(listening,), daemon=True)
        accepting.start()
        yield folder
        listening.shutdown(socket.SHUT_RDWR)
        accepting.join()


def _accept(listening: socket.socket) -> None:
    with suppress(OSError):
        while True:
            channel, _ = listening.accept()
            threading.Thread(target=_serve, args=(channel,), daemon=True).start()


def _serve(channel: socket.socket) -> None:
    with channel:
        asked = receive(channel)
        if asked is None:
            return
        message, streams = asked
        command = Command(words=message["words"], env=message["env"], cwd=Path(message["cwd"]))
        pid = zygote().fork(command, (streams[0], streams[1], streams[2]))
        for stream in streams:
            os.close(stream)
        while (code := zygote().code(pid, LOOK_EVERY_S)) is None:
            pass
        channel.sendall(str(code).encode())

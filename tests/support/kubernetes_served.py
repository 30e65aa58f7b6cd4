"""Short words for clients of an estate's Kubernetes: plain HTTP over TLS, and the real kubectl."""

from __future__ import annotations

import json
import ssl
import subprocess
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

from tests.support.kubernetes_cluster import boot_the_day
from vgpuctl.sim.logins import Logins
from vgpuctl.testing import Estate

TOKEN = "a-token-for-tests"
WITHIN_S = 20
#: Virtual seconds in a real one: stories pass quickly, and nothing in a test sleeps.
SPEED = 20.0
TICK_S = 0.01
KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"


@dataclass(frozen=True)
class Answer:
    code: int
    body: Any


@contextmanager
def standing_still(folder: Path) -> Iterator[Estate]:
    """The story's estate by day. Its time passes only when a test lets it."""
    with Estate(folder, instant=False, frozen=True, logins=Logins(token=TOKEN)) as estate:
        estate.within(boot_the_day)
        yield estate


@contextmanager
def running_time(estate: Estate) -> Iterator[None]:
    """Let time pass quickly, for a client that waits for something."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(TICK_S):
            estate.within(lambda world: world.wait(TICK_S * SPEED))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(WITHIN_S)


def environment(estate: Estate) -> dict[str, str]:
    """kubectl keeps in its HOME what it has discovered."""
    return {**estate.environment(), "HOME": str(estate.folder)}


def kubectl(estate: Estate, *words: str, fails: bool = False) -> str:
    """All that it says."""
    command, env = [str(KUBECTL), *words], environment(estate)
    # Without input, for one who is not let in would be asked for a name.
    done = subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode != 0) is fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def connect(estate: Estate) -> HTTPSConnection:
    context = ssl.create_default_context(cafile=str(estate.ca))
    return HTTPSConnection("127.0.0.1", estate.kubernetes_port, context=context, timeout=WITHIN_S)


def authorization(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def http(estate: Estate, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
    """The answer to one request of a connection of its own."""
    connection = connect(estate)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, {**authorization(), **named})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return Answer(response.status, json.loads(text) if text else None)


def first_record(estate: Estate, path: str) -> bytes:
    """What comes first of an answer: no reading of TLS gives more than one record."""
    connection = connect(estate)
    connection.request("GET", path, headers=authorization())
    assert isinstance(connection.sock, ssl.SSLSocket)
    record = connection.sock.read(1 << 14)
    connection.close()
    return record

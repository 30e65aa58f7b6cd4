"""The acting Lease over an API server that refuses stale writes, and sometimes loses an answer."""

from __future__ import annotations

import copy
import itertools
import time
from typing import Any

import pytest

from vgpuctl.kube.client import NotFoundError
from vgpuctl.kube.lease import ActingLease
from vgpuctl.model.errors import BusyError, ChangedMeanwhileError, PassingError


class Server:
    """One Lease, its resourceVersion, and answers that may be lost after the write was done."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.lose_answers = 0
        self.asks_to_wait: list[float] = []
        self._versions = itertools.count(1)

    def get(self, path: str) -> dict[str, Any]:
        if self.asks_to_wait:
            error = PassingError("too many requests")
            error.after_s = self.asks_to_wait.pop(0)
            raise error
        if self.lease is None:
            raise NotFoundError("no lease")
        return copy.deepcopy(self.lease)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.lease is not None:
            raise ChangedMeanwhileError("there is one")
        return self._stored(body)

    def put(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert self.lease is not None
        if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ChangedMeanwhileError("it has changed")
        return self._stored(body)

    def _stored(self, body: dict[str, Any]) -> dict[str, Any]:
        version = str(next(self._versions))
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        if self.lose_answers > 0:
            self.lose_answers -= 1
            raise PassingError("the answer was lost")
        return copy.deepcopy(self.lease)

    @property
    def holder(self) -> str:
        assert self.lease is not None
        return str(self.lease["spec"]["holderIdentity"])


def lease(server: Server, duration_s: float = 0.3) -> ActingLease:
    return ActingLease(server, "kube-system", duration_s)  # type: ignore[arg-type]


def acquire(some: ActingLease) -> list[str]:
    said: list[str] = []
    some.acquire(said.append, lambda: False)
    return said


def test_it_is_taken_held_and_released() -> None:
    server = Server()
    mine = lease(server)
    assert acquire(mine) == []
    assert mine.held()
    mine.release()
    assert not mine.held()
    assert server.holder == ""
    assert acquire(lease(server)) == []


def test_a_server_that_asks_to_wait_longer_than_we_would_is_not_asked_again() -> None:
    server = Server()
    server.asks_to_wait = [0.3, 60.0]
    with pytest.raises(PassingError):
        acquire(lease(server, duration_s=1.0))
    assert server.asks_to_wait == [], "the first pause was short enough"


def test_a_server_that_cannot_answer_for_longer_than_a_short_lease_lasts_is_asked_again() -> None:
    server = Server()
    server.asks_to_wait = [0.3, 0.3, 0.3]
    mine = lease(server, duration_s=0.3)
    acquire(mine)
    assert mine.held()
    mine.release()


def test_a_holder_that_renews_is_left_alone() -> None:
    server = Server()
    mine = lease(server)
    acquire(mine)
    with pytest.raises(BusyError):
        acquire(lease(server))
    assert server.holder == mine.identity
    mine.release()


def test_a_holder_that_shows_no_life_is_waited_out_and_said() -> None:
    server = Server()
    acquire(lease(server, duration_s=60))
    assert server.lease is not None
    server.lease["spec"]["leaseDurationSeconds"] = 0.2
    after = lease(server)
    said = acquire(after)
    assert "waiting up to 0 s" in said[0]
    assert "no" in said[1]
    assert server.holder == after.identity
    after.release()


@pytest.mark.parametrize("lost", [1, 2])
def test_a_renewal_whose_answer_is_lost_neither_loses_the_lease_nor_blocks_its_release(lost: int) -> None:
    server = Server()
    mine = lease(server)
    acquire(mine)
    server.lose_answers = lost
    version = server.get("")["metadata"]["resourceVersion"]
    deadline = time.monotonic() + 10
    while server.lose_answers and time.monotonic() < deadline:
        assert server.get("")["metadata"]["resourceVersion"] >= version
    mine.release()
    assert server.holder == ""


def test_one_that_somebody_else_took_is_not_ours_any_more() -> None:
    server = Server()
    mine = lease(server, duration_s=0.3)
    acquire(mine)
    assert server.lease is not None
    server.lease["spec"]["holderIdentity"] = "somebody"
    server.lease["metadata"]["resourceVersion"] = "9999"
    deadline = time.monotonic() + 10
    while mine.held():
        assert time.monotonic() < deadline
    assert mine.lost()
    mine.release()
    assert server.holder == "somebody"


def test_a_look_that_fails_while_a_silent_holder_is_waited_out_begins_nothing_anew() -> None:
    server = Server()
    acquire(lease(server, duration_s=60))
    assert server.lease is not None
    server.lease["spec"]["leaseDurationSeconds"] = 0.5
    said: list[str] = []

    def say(text: str) -> None:
        if not said:
            server.asks_to_wait = [0.05, 0.05]
        said.append(text)

    mine = lease(server)
    mine.acquire(say, lambda: False)
    assert mine.held()
    assert len(said) == 2, "that it waits, and that nobody showed"
    mine.release()

"""The acting Lease over an API server that refuses stale writes, and sometimes loses an answer."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.lease_server import Server, stored
from vgpuctl.kube.client import NotFoundError
from vgpuctl.kube.lease import ActingLease
from vgpuctl.kube.leases import LONGEST_S, claimed_s
from vgpuctl.model.errors import BusyError, ExitCode, PassingError, StoppedError


def lease(server: Server, duration_s: float = 0.3) -> ActingLease:
    return ActingLease(server, "vgpuctl", duration_s)  # type: ignore[arg-type]


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
    assert "Waiting up to 0 s" in said[0]
    assert "no" in said[1]
    assert server.holder == after.identity
    after.release()


def absent() -> dict[str, Any]:
    raise NotFoundError("no lease")


@pytest.mark.parametrize(
    "wrong",
    [
        absent,
        lambda: stored("0", {"holderIdentity": ""}),
        lambda: {"kind": "LeaseList", "metadata": {"resourceVersion": "1"}, "items": []},
        lambda: {"kind": "Lease", "metadata": {"name": "worker-1", "resourceVersion": "1"}, "spec": {}},
        lambda: {"kind": "APIGroup", "name": "apps"},
    ],
    ids=["none", "a free one", "a list", "a node's", "no object"],
)
@pytest.mark.parametrize("nth", [0, 1])
def test_one_answer_that_shows_it_free_takes_it_from_no_living_holder(nth: int, wrong: Any) -> None:
    """A reply to another request was read as a Lease that nobody holds."""
    server = Server()
    mine = lease(server, duration_s=60)
    acquire(mine)
    server.instead = [lambda: copy.deepcopy(server.lease or {})] * nth + [wrong]
    with pytest.raises((BusyError, StoppedError)):
        # Who is not refused as busy waits a minute for a sign of life.
        lease(server).acquire(print, after_looks(3))
    assert server.holder == mine.identity
    mine.release()


def after_looks(number: int) -> Callable[[], bool]:
    looks = itertools.count(1)
    return lambda: next(looks) > number


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
    while not mine.lost():
        assert time.monotonic() < deadline
    assert not mine.held()
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


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline


def test_who_stops_while_a_living_holder_is_waited_for_takes_nothing() -> None:
    """The holder renews every five seconds: at the moment of Ctrl-C it has shown no sign of life yet."""
    server = Server()
    holder = lease(server, duration_s=60)
    acquire(holder)
    before = copy.deepcopy(server.lease)
    stopped: list[str] = []
    with pytest.raises(StoppedError) as error:
        lease(server).acquire(stopped.append, lambda: bool(stopped))
    assert error.value.exit_code is ExitCode.INTERRUPTED
    assert server.lease == before
    holder.release()


def test_who_stops_before_the_lease_is_taken_takes_nothing() -> None:
    server = Server()
    with pytest.raises(StoppedError):
        lease(server).acquire(print, lambda: True)
    assert server.lease is None


def test_who_stops_while_the_server_cannot_answer_ends_as_interrupted() -> None:
    server = Server()
    server.asks_to_wait = [0.01]
    with pytest.raises(StoppedError):
        lease(server).acquire(print, lambda: True)


def test_who_stops_after_an_answer_was_lost_gives_back_what_the_server_took() -> None:
    server = Server()
    server.lose_answers = 1
    looks = iter([False, True, True])
    with pytest.raises(StoppedError):
        lease(server).acquire(print, lambda: next(looks))
    assert server.holder == ""


def test_one_that_somebody_deleted_is_put_back_by_its_holder() -> None:
    server = Server()
    mine = lease(server)
    acquire(mine)
    server.lease = None
    wait_until(lambda: server.lease is not None)
    assert server.holder == mine.identity
    wait_until(mine.held)
    assert not mine.lost()
    mine.release()
    assert server.holder == ""


def test_one_that_was_deleted_and_taken_by_another_is_lost() -> None:
    """The server knows no Lease when ours is renewed, and another's when ours is put back."""
    server = Server()
    mine = lease(server)
    acquire(mine)
    server.lease = stored("7", {"holderIdentity": "another"})
    server.faults = [NotFoundError("it was deleted")]
    wait_until(mine.lost)
    assert not mine.held()
    mine.release()
    assert server.holder == "another"


def test_a_fault_of_ours_while_it_is_renewed_is_reported_with_its_place_and_the_next_renewal_goes_on() -> None:
    server = Server()
    mine = lease(server)
    said = acquire(mine)
    server.faults = [KeyError("spec")]
    wait_until(lambda: bool(said))
    assert "KeyError" in said[0]
    assert "lease_server.py:" in said[0]
    version = server.get("")["metadata"]["resourceVersion"]
    wait_until(lambda: server.get("")["metadata"]["resourceVersion"] != version)
    assert mine.held()
    mine.release()


@pytest.mark.parametrize(
    ("said", "believed"),
    [
        (15, 15.0),
        (3600, LONGEST_S),
        (10**400, 0.0),
        (float("nan"), 0.0),
        ("soon", 0.0),
        (-1, 0.0),
        (None, 0.0),
        ([], 0.0),
    ],
)
def test_what_a_holder_claims_is_believed_up_to_a_minute(said: object, believed: float) -> None:
    assert claimed_s({"spec": {"leaseDurationSeconds": said}}) == believed


def test_a_lease_without_a_spec_is_nobodys() -> None:
    server = Server()
    server.lease = stored("1", None)
    mine = lease(server)
    acquire(mine)
    assert server.holder == mine.identity
    mine.release()

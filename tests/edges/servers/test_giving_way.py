"""A daemon that holds the acting Lease gives way to a person's command: the ask, its end, and who passes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.lease_server import Server
from tests.support.lease_time import LeaseTime
from vgpuctl.kube import lease as lease_module
from vgpuctl.kube.lease import ASKER_WITHIN_S, ActingLease
from vgpuctl.kube.lease_keeper import LeaseKeeper
from vgpuctl.kube.leases import ACTING, ASKED_BY, GIVES_WAY, lease_body
from vgpuctl.model.errors import BusyError, ExitCode, PassingError, StoppedError

WITHIN_S = 10.0
#: Real clocks, because threads and their waits are what is shown. A Lease claims at least a second.
DURATION_S = 0.6


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "ASK_EVERY_S", 0.05)
    monkeypatch.setattr(lease_module, "LOOK_EVERY_S", 0.02)


def person(server: Server, purpose: str = "anna: switch night") -> ActingLease:
    return ActingLease(server, "vgpuctl", DURATION_S, purpose=purpose)  # type: ignore[arg-type]


def daemon(server: Server, duration_s: float = DURATION_S) -> ActingLease:
    lease = ActingLease(server, "vgpuctl", duration_s, gives_way=True)  # type: ignore[arg-type]
    lease.acquire(print, never)
    return lease


def never() -> bool:
    return False


def until(true: Callable[[], object]) -> None:
    ends_s = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < ends_s
        time.sleep(0.005)


class Waiting:
    """A person's command that waits for the Lease in a thread of its own."""

    def __init__(self, lease: ActingLease) -> None:
        self.lease, self.said, self.stopped = lease, list[str](), False
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.lease.acquire(self.said.append, lambda: self.stopped)
        except BaseException as error:
            self.error = error

    def ended(self) -> None:
        self.thread.join(WITHIN_S)
        assert not self.thread.is_alive()

    def stop(self) -> None:
        self.stopped = True
        self.ended()


@contextmanager
def waiting(lease: ActingLease) -> Iterator[Waiting]:
    some = Waiting(lease)
    try:
        yield some
    finally:
        some.stop()
        lease.release()


def test_a_daemon_hears_the_ask_and_the_person_gets_the_lease_after_it() -> None:
    server = Server()
    holder = daemon(server)
    assert server.annotations == {GIVES_WAY: "true"}
    assert holder.asked() == ""
    with waiting(person(server)) as anna:
        until(holder.asked)
        assert holder.asked() == f"{anna.lease.identity} (anna: switch night)"
        assert anna.said == [f"The daemon ({holder.identity}) is at work; it gives way at the next safe point."]
        assert holder.held()
        holder.release()
        assert holder.asked() == ""
        until(anna.lease.held)
        assert server.annotations == {}, "neither the ask nor the daemon's promise is left"
    assert server.holder == ""


def test_an_ask_is_one_line_of_bounded_length_whatever_it_was_written_as() -> None:
    server = Server()
    holder = daemon(server)
    with waiting(person(server, purpose="anna:\n  switch  night\t" + "!" * 5000)) as anna:
        until(holder.asked)
        assert holder.asked().startswith(f"{anna.lease.identity} (anna: switch night !!!")
        assert len(holder.asked()) == 1024
        anna.stop()
        assert ASKED_BY not in server.annotations, "the command knows its own ask"
    holder.release()


def test_a_daemon_that_takes_over_while_a_person_waits_is_asked_as_well() -> None:
    server = Server()
    first = daemon(server)
    with waiting(person(server)) as anna:
        until(first.asked)
        with server.locked():
            first._keeper.over.set()
            second = LeaseKeeper(server, "vgpuctl", ACTING, 60.0)  # type: ignore[arg-type]
            second.take(server.lease, {GIVES_WAY: "true", ASKED_BY: None})
        until(lambda: ASKED_BY in server.annotations)
        time.sleep(1.5)
        assert not anna.lease.held(), "it claims a minute, and not the second that the first one claimed"
        second.release()
        until(anna.lease.held)


def test_an_ask_outlives_renewals_and_the_holder_stays_the_holder() -> None:
    server = Server()
    holder = daemon(server, duration_s=0.3)
    with waiting(person(server)) as anna:
        until(holder.asked)
        writes = len(server.holders)
        until(lambda: len(server.holders) > writes + 5)
        assert server.annotations[ASKED_BY] == holder.asked()
        assert holder.held()
        assert not anna.lease.held()
        assert set(server.holders) == {holder.identity}
        holder.release()


def test_a_label_and_an_annotation_of_others_stay() -> None:
    server = Server()
    first = daemon(server)
    first.release()
    assert server.lease is not None
    server.lease["metadata"] |= {"labels": {"team": "gpu"}, "annotations": {"team/note": "ours"}}
    again = daemon(server)
    assert server.lease["metadata"]["labels"] == {"team": "gpu"}
    assert server.annotations == {"team/note": "ours", GIVES_WAY: "true"}
    again.release()
    assert server.annotations == {"team/note": "ours"}


def test_a_holder_without_the_promise_is_not_asked() -> None:
    server = Server()
    ben = person(server)
    ben.acquire(print, never)
    with pytest.raises(BusyError):
        person(server).acquire(print, never)
    assert ASKED_BY not in server.annotations
    ben.release()


def test_a_daemon_asks_no_other_daemon() -> None:
    server = Server()
    holder = daemon(server, duration_s=0.3)
    with pytest.raises(BusyError):
        daemon(server)
    assert holder.asked() == ""
    holder.release()


def test_a_stop_ends_the_wait_and_withdraws_the_ask() -> None:
    server = Server()
    holder = daemon(server)
    with waiting(person(server)) as anna:
        until(holder.asked)
        anna.stop()
        assert isinstance(anna.error, StoppedError)
        assert anna.error.exit_code is ExitCode.INTERRUPTED
        assert server.annotations == {GIVES_WAY: "true"}
        until(lambda: not holder.asked())
        assert holder.held()
    holder.release()


def test_a_withdrawal_that_a_renewal_overtakes_is_made_again() -> None:
    server = Server()
    holder = daemon(server, duration_s=60)
    with waiting(person(server)) as anna:
        until(holder.asked)
        read = server.get
        overtaken: list[str] = []

        def get(path: str) -> dict[str, Any]:
            found = read(path)
            # The first of them may still be a look of the wait.
            if anna.stopped and len(overtaken) < 2 and threading.current_thread() is anna.thread:
                overtaken.append(path)
                holder._keeper._put(lease_body(server.lease or {}, holder.identity, 60, {}))
            return found

        server.get = get  # type: ignore[method-assign]
        anna.stopped = True
        anna.ended()
        assert len(overtaken) == 2
        assert ASKED_BY not in server.annotations
    holder.release()


def test_a_daemon_that_dies_while_it_is_asked_is_waited_out() -> None:
    server = Server()
    holder = daemon(server)
    with waiting(person(server)) as anna:
        until(holder.asked)
        holder._keeper.over.set()  # its process is gone: nothing is renewed or released
        until(anna.lease.held)
        assert anna.said[-1].startswith(f"{holder.identity} shows no sign of life")


def test_an_ask_whose_answer_is_lost_is_written_once() -> None:
    server = Server()
    holder = daemon(server, duration_s=60)
    server.lose_answers = 1
    with waiting(person(server)) as anna:
        until(holder.asked)
        assert anna.error is None
        assert len(server.holders) == 2, "the daemon's first write and the ask"
        holder.release()
        until(anna.lease.held)


def test_a_long_wait_for_a_daemon_leaves_the_server_its_time_to_answer_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time for retries counts from the end of the wait."""
    monkeypatch.setattr(lease_module, "RETRY_WITHIN_S", 0.0)
    server = Server()
    holder = daemon(server)
    with waiting(person(server)) as anna:
        until(holder.asked)
        time.sleep(DURATION_S * 1.5)
        holder._keeper.over.set()
        with server.locked():
            server.faults = [PassingError("busy")]
            server.free()
        until(anna.lease.held)
        assert server.faults == []
        assert anna.error is None


def test_a_second_person_waits_under_the_first_ones_ask() -> None:
    """One of the two gets the Lease. The other finds a person at work, as always."""
    server = Server()
    holder = daemon(server)
    with waiting(person(server)) as anna, waiting(person(server, "ben")) as ben:
        until(holder.asked)
        asked = holder.asked()
        until(lambda: anna.said and ben.said)
        holder.release()
        until(lambda: anna.lease.held() != ben.lease.held() and (anna.error or ben.error))
        loser = ben if anna.lease.held() else anna
        assert isinstance(loser.error, BusyError)
        assert asked.endswith("(anna: switch night)") or asked.endswith("(ben)")
        assert ASKED_BY not in server.annotations


def test_if_the_first_person_withdraws_the_second_asks() -> None:
    server = Server()
    holder = daemon(server)
    with waiting(person(server)) as anna:
        until(holder.asked)
        with waiting(person(server, "ben")) as ben:
            until(lambda: ben.said)
            anna.stop()
            until(lambda: holder.asked().endswith("(ben)"))
            holder.release()
            until(ben.lease.held)


def free_with_an_ask() -> Server:
    """The Lease after a daemon gave way to a command that was killed meanwhile."""
    server = Server()
    first = daemon(server)
    assert server.lease is not None
    server.lease["metadata"]["annotations"][ASKED_BY] = "laptop/7/aa (anna)"
    server.lease["metadata"]["resourceVersion"] = "1000"
    first._keeper.look()
    first.release()
    assert (server.holder, server.annotations) == ("", {ASKED_BY: "laptop/7/aa (anna)"})
    return server


def test_a_daemon_that_wants_a_free_lease_lets_the_asker_pass() -> None:
    server = free_with_an_ask()
    anna, began = person(server), len(server.holders)
    later = threading.Timer(0.2, anna.acquire, (print, never))
    later.daemon = True
    later.start()
    with pytest.raises(BusyError):
        daemon(server)
    later.join()
    assert set(server.holders[began:]) == {anna.identity}
    anna.release()


def test_an_ask_without_life_is_ignored_and_removed_after_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    server, clock = free_with_an_ask(), LeaseTime(monkeypatch)
    began_s = clock.now_s
    lease = ActingLease(server, "vgpuctl", gives_way=True)  # type: ignore[arg-type]
    lease.acquire(print, never)
    assert ASKER_WITHIN_S <= clock.now_s - began_s < ASKER_WITHIN_S + 1
    assert lease.held()
    assert server.annotations == {GIVES_WAY: "true"}
    lease.release()


def test_a_stop_while_an_asker_passes_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server, clock = free_with_an_ask(), LeaseTime(monkeypatch)
    ends_s = clock.now_s + ASKER_WITHIN_S / 2
    with pytest.raises(StoppedError):
        ActingLease(server, "vgpuctl", gives_way=True).acquire(print, lambda: clock.now_s > ends_s)  # type: ignore[arg-type]
    assert (server.holder, list(server.annotations)) == ("", [ASKED_BY])

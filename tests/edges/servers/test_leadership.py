"""Of several daemons one leads: their turns in virtual time, and their threads by a real clock."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.lease_server import Line, Server, stored
from tests.support.lease_time import LeaseTime
from vgpuctl.kube import leadership as module
from vgpuctl.kube.client import NotAllowedError
from vgpuctl.kube.leadership import LOOK_EVERY_S, RIGHTS_AGAIN_S, Leadership
from vgpuctl.kube.lease import ActingLease
from vgpuctl.kube.leases import LEADING
from vgpuctl.model.errors import PassingError

DURATION_S = 15.0
WITHIN_S = 10.0
#: Real clocks, because the threads are what is shown. A Lease claims at least a second.
QUICK_S = 0.6


class Daemon:
    """A daemon's leadership in virtual time: its turns are taken here, and no thread is started."""

    def __init__(self, server: Server, clock: LeaseTime) -> None:
        self.said: list[str] = []
        self.line, self._clock, self.looked = Line(server), clock, 0
        self.leadership = Leadership(self.line, "vgpuctl", DURATION_S, self.said.append)  # type: ignore[arg-type]
        self._due_s = clock.now_s

    def turn_if_due(self) -> None:
        if self._clock.now_s >= self._due_s:
            self._due_s = self._clock.now_s + self.leadership._turn()
            self.looked += 1

    @property
    def leads(self) -> bool:
        return self.leadership.leading()

    @property
    def identity(self) -> str:
        return self.leadership.identity


def play(clock: LeaseTime, for_s: float, *daemons: Daemon) -> None:
    """Let time pass in tenths of a second. Two never lead at once."""
    for _ in range(round(for_s * 10)):
        for daemon in daemons:
            daemon.turn_if_due()
        assert sum(daemon.leads for daemon in daemons) < 2
        clock.now_s += 0.1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LeaseTime:
    return LeaseTime(monkeypatch)


def leader_and_standby(clock: LeaseTime) -> tuple[Server, Daemon, Daemon]:
    server = Server()
    first, second = Daemon(server, clock), Daemon(server, clock)
    play(clock, 1.0, first, second)
    assert (first.leads, second.leads) == (True, False)
    assert second.said == [f"This daemon stands by: {first.leadership.identity} leads."]
    assert (first.leadership.standing_by(), second.leadership.standing_by()) == (False, True)
    second.said.clear()
    return server, first, second


def test_a_new_leader_waits_no_second_time_for_the_acting_lease_of_the_one_that_died(clock: LeaseTime) -> None:
    """A crash in a switch leaves both Leases. Their silence counts at once: both were looked at."""
    _, _, second = leader_and_standby(clock)
    acting = Server()
    acting.lease = stored("1", {"holderIdentity": "first", "leaseDurationSeconds": 15, "renewTime": "then"})
    watching, taking = (ActingLease(acting, "vgpuctl", DURATION_S, gives_way=True) for _ in range(2))  # type: ignore[arg-type]
    taking.sighting = watching.sighting
    second.leadership.look_beside = watching.look
    died_s = clock.now_s
    play(clock, DURATION_S + 1.5, second)
    assert second.leads
    said: list[str] = []
    taking.acquire(said.append, lambda: False)
    assert clock.now_s - died_s <= DURATION_S + 2.0
    assert said == ["first shows no sign of life: it ended without releasing the Lease. Going on."]
    taking.release()


def test_one_leads_for_years_and_the_other_waits(clock: LeaseTime) -> None:
    server, first, second = leader_and_standby(clock)
    assert server.lease is not None
    assert server.lease["metadata"]["name"] == LEADING
    play(clock, 3600.0, first, second)
    assert set(server.holders) == {first.identity}
    assert 3600 / (DURATION_S / 3) * 0.9 < len(server.holders) < 3600 / (DURATION_S / 3) * 1.1
    assert second.looked < 3600 * 1.1, "about once a second"
    assert first.said == second.said == []


def test_after_a_release_the_other_leads_at_its_next_look(clock: LeaseTime) -> None:
    server, first, second = leader_and_standby(clock)
    first.leadership._keeper.release()
    play(clock, LOOK_EVERY_S + 0.2, second)
    assert second.leads
    assert server.overtakings() == []


@pytest.mark.parametrize("since_renewal_s", [0.0, 2.5, 4.9])
def test_a_leader_that_died_is_followed_within_the_duration_and_two_seconds(
    clock: LeaseTime, since_renewal_s: float
) -> None:
    server, first, second = leader_and_standby(clock)
    renewals = len(server.holders)
    while len(server.holders) == renewals:
        play(clock, 0.1, first, second)
    play(clock, since_renewal_s, second)
    died_s = clock.now_s - since_renewal_s
    while not second.leads:
        play(clock, 0.1, second)
    assert DURATION_S <= clock.now_s - died_s < DURATION_S + 2


def test_a_leader_that_is_cut_off_leads_no_longer_before_another_does(clock: LeaseTime) -> None:
    server, first, second = leader_and_standby(clock)
    first.line.error = PassingError("Kubernetes at sim does not answer: TimeoutError.")
    play(clock, DURATION_S * 2 / 3, first, second)
    assert not first.leads
    play(clock, DURATION_S + 2, first, second)
    assert second.leads
    first.line.error = None
    play(clock, 60.0, first, second)
    assert (first.leads, second.leads) == (False, True)
    assert server.overtakings() == [(first.identity, second.identity)]


def test_a_leader_that_was_cut_off_alone_leads_again(clock: LeaseTime) -> None:
    _, first, _ = leader_and_standby(clock)
    first.line.error = PassingError("away")
    play(clock, 60.0, first)
    assert not first.leads
    first.line.error = None
    play(clock, 2.0, first)
    assert first.leads


def test_a_deleted_lease_is_no_release(clock: LeaseTime) -> None:
    """Its holder still leads by its own clock, and puts it back with its next renewal."""
    server, first, second = leader_and_standby(clock)
    play(clock, DURATION_S / 3, first, second)
    server.lease = None
    play(clock, 30.0, second, first)
    assert (first.leads, server.holder) == (True, first.identity)
    server.lease = None
    play(clock, DURATION_S + 2, second)
    assert second.leads, "a dead leader's Lease that was deleted is waited out as well"


def test_a_deleted_lease_with_a_frozen_leader_is_not_put_back_under_another(clock: LeaseTime) -> None:
    server, first, second = leader_and_standby(clock)
    play(clock, DURATION_S + 2, second)
    assert second.leads
    server.lease = None
    play(clock, 60.0, first, second)
    assert (first.leads, second.leads, server.holder) == (False, True, second.identity)


def test_an_outage_is_said_once_and_the_next_one_again(clock: LeaseTime) -> None:
    _, first, second = leader_and_standby(clock)
    for outages in (1, 2):
        for daemon in (first, second):
            daemon.line.error = PassingError("Kubernetes at sim does not answer: TimeoutError.")
        play(clock, 300.0, first, second)
        expected = ["The leading Lease: Kubernetes at sim does not answer: TimeoutError."] * outages
        assert first.said == second.said == expected
        for daemon in (first, second):
            daemon.line.error = None
        play(clock, 30.0, first, second)
        assert first.leads


def test_a_missing_right_is_named_every_ten_minutes(clock: LeaseTime) -> None:
    daemon = Daemon(Server(), clock)
    text = 'Kubernetes at sim does not allow that: User "daemon" cannot get resource "leases".'
    daemon.line.error = NotAllowedError(text, hint="vgpuctl rights kubernetes prints the rights.")
    play(clock, RIGHTS_AGAIN_S - 20, daemon)
    assert daemon.said == [f"The leading Lease: {text} vgpuctl rights kubernetes prints the rights."]
    assert daemon.looked < RIGHTS_AGAIN_S / 5, "a refusal does not change within a second"
    play(clock, RIGHTS_AGAIN_S, daemon)
    assert len(daemon.said) == 2
    daemon.line.error = None
    play(clock, 12.0, daemon)
    assert daemon.leads


def test_a_fault_of_ours_is_said_with_its_place_and_ends_nothing(clock: LeaseTime) -> None:
    daemon = Daemon(Server(), clock)
    daemon.line.error = KeyError("spec")
    play(clock, 30.0, daemon)
    (said,) = daemon.said
    assert said.startswith("The leading Lease: KeyError: 'spec' (lease_server.py:")
    daemon.line.error = None
    play(clock, 2.0, daemon)
    assert daemon.leads


def test_a_server_that_asks_to_wait_is_left_alone_so_long(clock: LeaseTime) -> None:
    daemon = Daemon(Server(), clock)
    error = PassingError("too many requests")
    error.after_s = 20.0
    daemon.line.error = error
    play(clock, 59.0, daemon)
    assert daemon.looked == 3


class Running:
    """A daemon's leadership with its threads."""

    def __init__(self, server: Server) -> None:
        self.said: list[str] = []
        self.line = Line(server)
        self.leadership = Leadership(self.line, "vgpuctl", QUICK_S, self.said.append)  # type: ignore[arg-type]
        self.changes: list[bool] = []
        self.leadership.on_change(lambda: self.changes.append(self.leadership.leading()))
        self.leadership.start()

    @property
    def leads(self) -> bool:
        return self.leadership.leading()


@pytest.fixture
def daemons(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Server], Running]]:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(module, "STOP_WITHIN_S", 0.2)
    started: list[Running] = []

    def start(server: Server) -> Running:
        started.append(Running(server))
        return started[-1]

    yield start
    for each in started:
        each.line.open.set()
        each.leadership.stop()


def until(true: Callable[[], object]) -> None:
    ends_s = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < ends_s
        time.sleep(0.005)


def test_a_stop_releases_the_lease_and_the_next_one_leads(daemons: Callable[[Server], Running]) -> None:
    server = Server()
    first = daemons(server)
    until(lambda: first.changes == [True])
    second = daemons(server)
    time.sleep(QUICK_S)
    assert not second.leads
    first.leadership.stop()
    assert not first.leads
    assert server.overtakings() == []
    until(lambda: second.changes == [True])
    assert first.said == ["This daemon leads."]
    assert second.said == [f"This daemon stands by: {first.leadership.identity} leads.", "This daemon leads."]
    second.leadership.stop()
    assert server.holder == ""


def test_a_leader_whose_request_hangs_knows_that_it_leads_no_longer(daemons: Callable[[Server], Running]) -> None:
    server = Server()
    first = daemons(server)
    until(lambda: first.changes == [True])
    second = daemons(server)
    first.line.open.clear()
    hung_s = time.monotonic()
    until(lambda: first.changes == [True, False])
    assert time.monotonic() - hung_s < QUICK_S + 0.5, "the request still hangs"
    assert first.said[-1] == "This daemon does not lead any more."
    until(lambda: second.leads)
    assert not first.leads
    stopped_s = time.monotonic()
    first.leadership.stop()
    assert time.monotonic() - stopped_s < 2
    first.line.open.set()
    until(lambda: not first.leadership._thread.is_alive())
    assert server.holder == second.leadership.identity


def test_a_leader_that_stops_while_its_request_hangs_leads_no_longer_at_once(
    daemons: Callable[[Server], Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server()
    first = daemons(server)
    until(lambda: first.changes == [True])
    first.line.open.clear()
    monkeypatch.setattr(module, "STOP_WITHIN_S", 0.0)
    first.leadership.stop()
    assert first.leadership._keeper.held(), "the Lease is still ours, and soon released"
    assert not first.leads
    first.line.open.set()
    until(lambda: server.holder == "")


def test_a_listener_that_fails_ends_nothing_and_one_that_left_is_not_called(
    daemons: Callable[[Server], Running],
) -> None:
    server = Server()
    server.down = PassingError("not yet")
    some = daemons(server)
    calls: list[str] = []

    def fail() -> None:
        calls.append("failing")
        raise KeyError("listener")

    leave = some.leadership.on_change(lambda: calls.append("left"))
    some.leadership.on_change(fail)
    some.leadership.on_change(lambda: calls.append("last"))
    leave()
    server.down = None
    until(lambda: "last" in calls)
    assert calls == ["failing", "last"]
    assert "KeyError: 'listener'" in some.said[-1]
    until(lambda: len(server.holders) > 3)
    assert some.leads


@pytest.mark.parametrize("nth", range(5))
def test_of_two_that_begin_at_once_one_leads(daemons: Callable[[Server], Running], nth: int) -> None:
    server, at_once = Server(), threading.Barrier(2)
    both: list[Running] = []

    def begin() -> None:
        at_once.wait(WITHIN_S)
        both.append(daemons(server))

    threads = [threading.Thread(target=begin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WITHIN_S)
    until(lambda: any(each.leads for each in both))
    first, second = sorted(both, key=lambda each: not each.leads)
    first.leadership.stop()
    until(lambda: second.leads)
    assert server.overtakings() == []
    holders = [holder for holder, _ in itertools.groupby(server.holders)]
    assert holders == [first.leadership.identity, "", second.leadership.identity]

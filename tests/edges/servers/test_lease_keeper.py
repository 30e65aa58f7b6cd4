"""A process that slept, and threads that compete: never two holders by the server's own log of writes."""

from __future__ import annotations

import random
import threading
import time

import pytest

from tests.support.lease_server import Line, Server
from tests.support.lease_time import LeaseTime
from vgpuctl.basics import uptime
from vgpuctl.kube import lease
from vgpuctl.kube.lease_keeper import LeaseKeeper
from vgpuctl.kube.leases import ACTING, ASKED_BY, GIVES_WAY, signs_of
from vgpuctl.model.errors import BusyError, PassingError

DURATION_S = 15.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LeaseTime:
    return LeaseTime(monkeypatch)


def keeper(server: Server) -> LeaseKeeper:
    return LeaseKeeper(server, "vgpuctl", ACTING, DURATION_S)  # type: ignore[arg-type]


def holding(server: Server) -> LeaseKeeper:
    some = keeper(server)
    some.take(server.lease, {})
    return some


def test_it_holds_nothing_before_it_takes_the_lease() -> None:
    some = keeper(Server())
    assert not some.held()
    some.release()
    assert not some.lost()


def test_a_lease_counts_as_held_for_two_thirds_of_its_duration(clock: LeaseTime) -> None:
    mine = holding(Server())
    clock.now_s += DURATION_S * 2 / 3 - 0.01
    assert mine.held()
    clock.now_s += 0.02
    assert not mine.held()


def test_a_process_that_slept_past_the_duration_holds_nothing_before_it_renews(clock: LeaseTime) -> None:
    """As after SIGSTOP and SIGCONT, or a laptop's lid."""
    server = Server()
    mine = holding(server)
    clock.now_s += DURATION_S
    other = holding(server)
    assert not mine.held()
    mine.renew()
    assert (mine.held(), mine.lost(), server.holder) == (False, True, other.identity)
    mine.renew()
    mine.release()
    assert server.holder == other.identity


def test_a_process_that_slept_takes_no_lease_back_that_another_has_released(clock: LeaseTime) -> None:
    """Plans were made and carried out meanwhile: what this process knows is old."""
    server = Server()
    mine = holding(server)
    clock.now_s += DURATION_S
    holding(server).release()
    mine.renew()
    assert (mine.held(), mine.lost(), server.holder) == (False, True, "")


def test_a_process_that_slept_puts_no_lease_back_that_was_deleted_meanwhile(clock: LeaseTime) -> None:
    """Another instance may have taken it before that, and believe in it still."""
    server = Server()
    mine = holding(server)
    clock.now_s += DURATION_S
    other = holding(server)
    server.lease = None
    mine.renew()
    assert (mine.held(), mine.lost(), server.lease) == (False, True, None)
    other.renew()
    assert (other.held(), server.holder) == (True, other.identity)


def test_a_process_that_slept_alone_goes_on(clock: LeaseTime) -> None:
    server = Server()
    mine = holding(server)
    clock.now_s += DURATION_S * 10
    assert not mine.held()
    mine.renew()
    assert (mine.held(), mine.lost()) == (True, False)


def test_a_deleted_lease_is_put_back_with_its_marks(clock: LeaseTime) -> None:
    server = Server()
    mine = keeper(server)
    mine.take(None, {GIVES_WAY: "true"})
    server.lease = None
    mine.renew()
    assert mine.held()
    assert (server.holder, server.annotations) == (mine.identity, {GIVES_WAY: "true"})


def test_only_a_renewal_that_arrived_counts(clock: LeaseTime) -> None:
    """An ask makes the server refuse the next renewal. A waiting instance would see no sign of life in that."""
    server = Server()
    mine, asker = holding(server), keeper(server)
    for number in range(5):
        clock.now_s += DURATION_S / 3
        before = signs_of(server.lease)
        found = asker.read()
        assert found is not None
        asker.mark(found, {ASKED_BY: f"laptop/{number}"})
        assert signs_of(server.lease) == before, "an ask is no sign of life of the holder"
        mine.renew()
        assert signs_of(server.lease) != before
        assert mine.held()
        assert server.annotations == {ASKED_BY: f"laptop/{number}"}


def test_a_renewal_that_fails_extends_nothing(clock: LeaseTime) -> None:
    server = Server()
    mine = holding(server)
    server.down = PassingError("away")
    clock.now_s += DURATION_S / 2
    with pytest.raises(PassingError):
        mine.renew()
    clock.now_s += DURATION_S / 4
    assert not mine.held()


def test_the_clock_runs_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """`time.monotonic` stands still meanwhile, so a laptop would believe in a Lease that another instance has."""
    counting_sleep = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    monkeypatch.setattr(time, "clock_gettime", {counting_sleep: 7.0}.__getitem__)
    assert uptime.uptime_s() == 7.0


def test_of_several_that_want_it_at_once_one_at_a_time_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real threads, because the order of their requests is what is tried. No lock of the product joins them."""
    monkeypatch.setattr(lease, "LOOK_EVERY_S", 0.005)
    server, at_once, inside = Server(), threading.Barrier(4), threading.Lock()
    chance, wrong = random.Random(1), list[str]()

    def compete() -> None:
        for _ in range(30):
            at_once.wait(10)
            # A long duration: no holder dies here, so each change of the holder goes through a release.
            mine = lease.ActingLease(Line(server, lambda: chance.uniform(0, 0.004)), "vgpuctl", 60.0)  # type: ignore[arg-type]
            try:
                mine.acquire(lambda _: None, lambda: False)
            except BusyError:
                continue
            if not inside.acquire(blocking=False):
                wrong.append("two are inside")
                continue
            time.sleep(0.002)
            assert mine.held()
            inside.release()
            mine.release()

    threads = [threading.Thread(target=compete) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert wrong == []
    assert server.overtakings() == []
    assert len(set(server.holders)) > 10

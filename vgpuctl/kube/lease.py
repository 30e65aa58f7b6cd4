"""The acting Lease: only its holder writes. It is taken for a plan that is not empty, and released afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from vgpuctl.basics.uptime import uptime_s
from vgpuctl.kube.client import Client, Object
from vgpuctl.kube.lease_asker import LeaseAsker
from vgpuctl.kube.lease_keeper import RETRY_AFTER_S, LeaseKeeper
from vgpuctl.kube.leases import ACTING, ASKED_BY, GIVES_WAY, Sighting, Signs, asked_by, claimed_s, holder_of, signs_of
from vgpuctl.model.errors import BusyError, StoppedError, VgpuctlError, with_place
from vgpuctl.wire.retries import RETRY_WITHIN_S, Stop, retry, sleep

LOOK_EVERY_S = 0.2
#: How often a holder looks for an ask, and an ask's writer for its turn. A safe point may be many minutes away.
ASK_EVERY_S = 1.0
#: Decision 0023: a waiting command takes a free Lease within two seconds. After this time it has ended without a word.
ASKER_WITHIN_S = 30.0

Say = Callable[[str], None]


def _say_nothing(_text: str) -> None:
    """Drop messages until a listener is set."""


class ActingLease:
    """The acting Lease as one instance holds it.

    `gives_way`: it is released soon after another instance asks for it, so such instances ask (decision 0023).
    `purpose`: who wants it for what, for people to read in an ask.
    """

    def __init__(
        self, client: Client, namespace: str, duration_s: float = 15.0, *, gives_way: bool = False, purpose: str = ""
    ) -> None:
        self._keeper = LeaseKeeper(client, namespace, ACTING, duration_s)
        self.identity, self._gives_way = self._keeper.identity, gives_way
        self._asker = LeaseAsker(self._keeper, purpose, may_ask=not gives_way)
        #: Shared with other readers of the Lease: their looks count, too.
        self.sighting = Sighting()
        #: What the Lease showed when its turn had come: free, or a holder that was silent for as long as it claimed.
        self._turn: Signs | None = None
        self._say: Say = _say_nothing

    def acquire(self, say: Say, stop: Stop) -> None:
        """Take the Lease.

        If its holder gives way, it is asked to, and waited for. If another holder renews it, that instance is at work:
        BusyError. If none renews it, its time is waited out. A server that cannot answer is asked again for at least
        that long. Once `stop` returns True, nothing is taken: StoppedError.
        """
        self._say, self._turn = say, None
        within_s = max(RETRY_WITHIN_S, self._keeper.duration_s + LOOK_EVERY_S)
        try:
            # A wait for a holder may take long, so the look after it has its own time for a server that cannot answer.
            while not retry(lambda: self._become_holder(say, stop), LOOK_EVERY_S, within_s, stop):
                pass
        except VgpuctlError as error:
            self._asker.withdraw()
            if not stop():
                raise
            # Our own write may have succeeded although its answer was lost.
            with suppress(VgpuctlError):
                self._keeper.release_on_server()
            raise _stopped() from error
        threading.Thread(target=self._keep, name="acting-lease", daemon=True).start()

    def look(self) -> None:
        """Look at another holder's Lease, so that its silence counts from its last sign of life on."""
        self.sighting.since_s(self._keeper.read())

    def held(self) -> bool:
        """True if the Lease is certainly ours by our own clock."""
        return self._keeper.held()

    def lost(self) -> bool:
        """True if the Lease is certainly another instance's."""
        return self._keeper.lost()

    def asked(self) -> str:
        """Return the command that asks for the Lease while we hold it, or "" (always, if we do not give way)."""
        return asked_by(self._keeper.lease) if self._gives_way and not self._keeper.over.is_set() else ""

    def release(self) -> None:
        """Release the Lease. If that fails, the next instance waits it out."""
        self._keeper.release()

    def _become_holder(self, say: Say, stop: Stop) -> bool:
        """Take the Lease, or wait until it is free or its holder has been silent. Return whether it is taken."""
        found = self._keeper.read()
        if not self._is_ours_to_take(found):
            # One answer may be wrong: a holder that is there again after the wait is alive.
            if self._turn is not None and not self._asker.can_ask(found):
                raise _busy(found)
            self._turn = self._wait_out(found, say, stop)
            return False
        if self._gives_way:
            found = self._let_pass(found, stop)
        if stop():
            raise _stopped()
        self._keeper.take(found, {ASKED_BY: None, GIVES_WAY: "true" if self._gives_way else None})
        return True

    def _is_ours_to_take(self, found: Object | None) -> bool:
        return holder_of(found) in {"", self.identity} or signs_of(found) == self._turn

    def _wait_out(self, found: Object | None, say: Say, stop: Stop) -> Signs:
        """Wait until the Lease is free, or until its holder was silent for as long as it claimed.

        Return what the Lease shows then. A failed look shows no sign of life; `acquire` looks once more.
        """
        within_s = self._claimed_s(found)
        since_s, seen = self.sighting.since_s(found), signs_of(found)
        if uptime_s() - since_s < within_s:
            say(self._wait_in_words(found, within_s))
        while uptime_s() - since_s < within_s:
            # Measured before: Ctrl-C while a living holder was waited for took its Lease (decision 0004).
            if stop():
                raise _stopped()
            self._asker.ask(found)
            sleep(ASK_EVERY_S if self._asker.can_ask(found) else LOOK_EVERY_S, stop)
            found = self._look(found, stop)
            if not holder_of(found):
                return signs_of(found)
            if signs_of(found) != seen:
                if not self._asker.can_ask(found):
                    raise _busy(found)
                # The holder may be another daemon now, with another duration.
                since_s, seen, within_s = self.sighting.since_s(found), signs_of(found), self._claimed_s(found)
        say(f"{holder_of(found)} shows no sign of life: it ended without releasing the Lease. Going on.")
        return seen

    def _claimed_s(self, found: Object | None) -> float:
        return claimed_s(found) or self._keeper.duration_s

    def _wait_in_words(self, found: Object | None, within_s: float) -> str:
        if self._asker.can_ask(found):
            return f"The daemon ({holder_of(found)}) is at work; it gives way at the next safe point."
        holder = f"Another instance ({holder_of(found)}) holds the Lease."
        return f"{holder} Waiting up to {within_s:.0f} s for a sign of life."

    def _look(self, last: Object | None, stop: Stop) -> Object | None:
        """Return the Lease as it is now, or as it last was if the server cannot answer."""
        try:
            return self._keeper.read()
        except VgpuctlError as error:
            if not error.passing:
                raise
            sleep(error.after_s, stop)
            return last

    def _let_pass(self, found: Object | None, stop: Stop) -> Object | None:
        """Leave the Lease to the command that asks for it, and return it if that command has ended without a word."""
        first, since_s = asked_by(found), uptime_s()
        while asked := asked_by(found):
            if asked != first:
                first, since_s = asked, uptime_s()
            if stop() or uptime_s() - since_s >= ASKER_WITHIN_S:
                break
            sleep(LOOK_EVERY_S, stop)
            found = self._look(found, stop)
            if not self._is_ours_to_take(found):
                raise _busy(found)
        return found

    def _keep(self) -> None:
        """Renew the Lease until its release. If it gives way, look for an ask between two renewals."""
        # Decision 0004: the Lease is trusted for two thirds without a renewal, so one comes well before.
        due_s = uptime_s() + self._keeper.duration_s / 3
        while not self._keeper.over.wait(self._pause_s(due_s)):
            if uptime_s() >= due_s:
                due_s = uptime_s() + self._renew()
            else:
                self._notice_an_ask(due_s)

    def _pause_s(self, due_s: float) -> float:
        left_s = max(0.0, due_s - uptime_s())
        return min(left_s, ASK_EVERY_S) if self._gives_way else left_s

    def _renew(self) -> float:
        """Renew the Lease. Return the pause before the next renewal; nothing is written during it."""
        pause_s = self._keeper.duration_s / 3
        try:
            self._keeper.renew()
        except VgpuctlError as error:
            return max(error.after_s, min(pause_s, RETRY_AFTER_S))
        except Exception as error:
            # Without this thread the Lease would expire silently; the next renewal may succeed.
            with suppress(Exception):
                self._say(f"The Lease could not be renewed: {with_place(error)}")
        return pause_s

    def _notice_an_ask(self, due_s: float) -> None:
        try:
            self._keeper.look()
        except VgpuctlError as error:
            self._keeper.over.wait(min(error.after_s, self._pause_s(due_s)))
        except Exception as error:
            with suppress(Exception):
                self._say(f"The Lease could not be read: {with_place(error)}")


def _stopped() -> StoppedError:
    return StoppedError("Stopped before the Lease was taken. Nothing was changed.")


def _busy(lease: Object | None) -> BusyError:
    return BusyError(
        f"Another instance is at work: {holder_of(lease)} renews its Lease.",
        hint="Wait for its end, or stop it. Then run the command again.",
    )

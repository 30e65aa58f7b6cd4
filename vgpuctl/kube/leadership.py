"""Which of several daemons leads: the one that holds the leading Lease. The others stand by."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import suppress

from vgpuctl.basics.uptime import uptime_s
from vgpuctl.kube.client import Client, NotAllowedError, Object
from vgpuctl.kube.lease_keeper import RETRY_AFTER_S, LeaseKeeper
from vgpuctl.kube.leases import LEADING, Signs, claimed_s, holder_of, signs_of
from vgpuctl.model.errors import BusyError, VgpuctlError, with_place

#: How often a daemon that stands by looks at the Lease.
LOOK_EVERY_S = 1.0
#: How soon a request is made again that failed for more than a moment, such as for want of a right.
REFUSED_AGAIN_S = 10.0
#: How often a missing right is said again.
RIGHTS_AGAIN_S = 600.0
STOP_WITHIN_S = 3.0

Say = Callable[[str], None]


def _see_nothing() -> None:
    """Look at no other Lease until one is set."""


class Leadership:
    """One daemon's part in leading. It never raises; what it cannot do it says.

    It waits for ever while another daemon leads. It takes over within the duration and two seconds of a leader's last
    renewal, and at once after a release.
    """

    def __init__(self, client: Client, namespace: str, duration_s: float, say: Say) -> None:
        self._keeper = LeaseKeeper(client, namespace, LEADING, duration_s)
        self.identity = self._keeper.identity
        self._troubles = _Troubles(say)
        self._listeners: list[Callable[[], None]] = []
        self._stopping, self._news = threading.Event(), threading.Event()
        self._known = False
        #: When the Lease was last read or renewed.
        self._seen_s = -math.inf
        self._leader = ""
        #: Looks at what else the leader holds, while this daemon stands by.
        self.look_beside: Callable[[], None] = _see_nothing
        #: What the Lease of another daemon last showed, since when, and how long that is waited out.
        self._seen: Signs | None = None
        self._since_s, self._claimed_s = -math.inf, 0.0
        self._thread = threading.Thread(target=self._run, name="leading-lease", daemon=True)

    def start(self) -> None:
        self._thread.start()
        threading.Thread(target=self._announce, name="leadership", daemon=True).start()

    def leading(self) -> bool:
        """True while this daemon certainly leads by its own clock. Cut off from Kubernetes, it soon does not."""
        return not self._stopping.is_set() and self._keeper.held()

    def standing_by(self) -> bool:
        """True if this daemon does not lead, and has just seen that it may not: it would take over in time."""
        return not self.leading() and uptime_s() - self._seen_s < self._keeper.duration_s

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` (from another thread) after each change of `leading`, until the returned function is called."""
        self._listeners.append(call)
        return lambda: self._listeners.remove(call)

    def stop(self) -> None:
        """Lead no longer, and release the Lease. If Kubernetes does not answer, the Lease is left to its end."""
        self._stopping.set()
        self._news.set()
        if self._thread.is_alive():
            self._thread.join(STOP_WITHIN_S)

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stopping.wait(pause_s):
            pause_s = self._turn()
            if self.leading() != self._known:
                self._news.set()
        with suppress(Exception):
            self._keeper.release()

    def _turn(self) -> float:
        """Renew the Lease, take it or look at it. Return the pause before the next turn."""
        try:
            pause_s = self._stand_by() if self._keeper.over.is_set() else self._renew()
        except BusyError:
            # Another daemon was quicker.
            self._seen_s = uptime_s()
            return LOOK_EVERY_S
        except VgpuctlError as error:
            self._troubles.say(error)
            return max(error.after_s, self._third_s(RETRY_AFTER_S) if error.passing else REFUSED_AGAIN_S)
        except Exception as error:
            self._troubles.say(error)
            return LOOK_EVERY_S
        self._troubles.end()
        self._seen_s = uptime_s()
        return pause_s

    def _renew(self) -> float:
        self._keeper.renew()
        if self._keeper.over.is_set():
            # Lost: another daemon leads, also if its Lease was deleted just now.
            self._seen, self._since_s, self._claimed_s = signs_of(None), uptime_s(), self._keeper.duration_s
            return 0.0
        return self._third_s()

    def _stand_by(self) -> float:
        found = self._keeper.read()
        left_s = self._left_s(found)
        if left_s > 0:
            self._name(holder_of(found))
            self.look_beside()
            return min(left_s, self._third_s(LOOK_EVERY_S))
        self._keeper.take(found, {})
        return self._third_s()

    def _name(self, leader: str) -> None:
        """Say once which daemon leads while this one stands by."""
        if leader and leader != self._leader:
            self._leader = leader
            self._troubles.tell(f"This daemon stands by: {leader} leads.")

    def _third_s(self, most_s: float = math.inf) -> float:
        return min(self._keeper.duration_s / 3, most_s)

    def _left_s(self, found: Object | None) -> float:
        """Return for how long the Lease is still another daemon's if it shows no sign of life."""
        if found is not None and holder_of(found) in {"", self.identity}:
            return 0.0
        # A Lease that was deleted is no release: its holder still leads, and puts it back.
        signs = self._seen if found is None else signs_of(found)
        if signs != self._seen:
            self._seen, self._since_s = signs, uptime_s()
            self._claimed_s = claimed_s(found) or self._keeper.duration_s
        return self._since_s + self._claimed_s - uptime_s()

    def _announce(self) -> None:
        """Notify listeners of each change. A thread of its own sees a loss by the clock while a request hangs."""
        while not self._stopping.is_set():
            self._news.wait(max(0.0, self._keeper.left_s()) if self._known else None)
            self._news.clear()
            leads = self.leading()
            if leads != self._known:
                self._known = leads
                self._notify(leads)

    def _notify(self, leads: bool) -> None:
        if not self._stopping.is_set():
            self._troubles.tell("This daemon leads." if leads else "This daemon does not lead any more.")
        for call in tuple(self._listeners):
            try:
                call()
            except Exception as error:
                self._troubles.say(error)


class _Troubles:
    """Says what fails: a missing right every ten minutes, anything else once until a turn has succeeded."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._said_s: dict[type[Exception], float] = {}

    def tell(self, text: str) -> None:
        with suppress(Exception):
            self._say(text)

    def say(self, error: Exception) -> None:
        again_s = RIGHTS_AGAIN_S if isinstance(error, NotAllowedError) else math.inf
        if uptime_s() - self._said_s.get(type(error), -math.inf) < again_s:
            return
        self._said_s[type(error)] = uptime_s()
        words = f"{error.message} {error.hint or ''}".strip() if isinstance(error, VgpuctlError) else with_place(error)
        self.tell(f"The leading Lease: {words}")

    def end(self) -> None:
        for kind in [kind for kind in self._said_s if not issubclass(kind, NotAllowedError)]:
            del self._said_s[kind]

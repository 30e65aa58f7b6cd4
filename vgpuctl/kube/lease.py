"""The acting Lease: only its holder writes. It is taken for a plan that is not empty, and released afterwards."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable

from vgpuctl.kube.client import Client, NotFoundError, Object
from vgpuctl.kube.leases import NAME, claimed_s, holder_of, lease_body, lease_in, renewal_of
from vgpuctl.kube.own_namespace import create_in
from vgpuctl.model.errors import BusyError, ChangedMeanwhileError, StoppedError, VgpuctlError, with_place
from vgpuctl.wire.retries import RETRY_WITHIN_S, Stop, retry, sleep

LOOK_EVERY_S = 0.2

Say = Callable[[str], None]


def _say_nothing(_text: str) -> None:
    """Drop messages until a listener is set."""


# The official client's `leaderelection` (37.0.2) catches only ApiException. When the API was lost, `run()` ended,
# `onstopped_leading` was never called, and the work went on. It also has no release and trusts the wall clock.
class ActingLease:
    """The Lease as one instance holds it. Only the monotonic clock decides."""

    def __init__(self, client: Client, namespace: str, duration_s: float = 15.0) -> None:
        self._client, self._namespace, self._duration_s = client, namespace, duration_s
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self.identity = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        self._lease: Object = {}
        self._renewed_s = float("-inf")
        self._lost = False
        self._released = threading.Event()
        self._writing = threading.Lock()
        self._say: Say = _say_nothing

    def acquire(self, say: Say, stop: Stop) -> None:
        """Take the Lease.

        If its holder renews it, another instance is at work: BusyError. If not, its time is waited out. A server that
        cannot answer is asked again for at least that long. Once `stop` returns True, nothing is taken: StoppedError.
        """
        self._say = say
        within_s = max(RETRY_WITHIN_S, self._duration_s + LOOK_EVERY_S)
        try:
            retry(lambda: self._become_holder(say, stop), LOOK_EVERY_S, within_s, stop)
        except VgpuctlError as error:
            if not stop():
                raise
            # Our own write may have succeeded although its answer was lost.
            self._release_on_server()
            raise _stopped() from error
        threading.Thread(target=self._keep, name="acting-lease", daemon=True).start()

    def _become_holder(self, say: Say, stop: Stop) -> None:
        found = self._read()
        if found is not None and holder_of(found) not in {"", self.identity}:
            seen = _signs(found)
            # One answer may be wrong: a holder that is there again after it was not waited out.
            waited_out = self._wait_out(found, say, stop)
            found = self._read()
            if holder_of(found) and not (waited_out and _signs(found) == seen):
                raise _busy(found)
        if stop():
            raise _stopped()
        self._take(found)

    def held(self) -> bool:
        """True while our last renewal is younger than two thirds of the duration.

        Others take the Lease only after all of it.
        """
        # Decision 0004: this is asked before each request, and no clock of another machine is compared.
        return not self._released.is_set() and time.monotonic() - self._renewed_s < self._duration_s * 2 / 3

    def lost(self) -> bool:
        return self._lost

    def release(self) -> None:
        """Release the Lease. If that fails, the next instance waits it out."""
        if self._released.is_set():
            return
        self._released.set()
        with self._writing:
            try:
                self._write(holder="")
            except ChangedMeanwhileError:
                self._release_on_server()
            except VgpuctlError:
                return

    def _release_on_server(self) -> None:
        """Release the Lease as it is on the server: our last renewal may have arrived although its answer did not."""
        with contextlib.suppress(VgpuctlError):
            found = self._read()
            if found is not None and holder_of(found) == self.identity:
                self._lease = found
                self._write(holder="")

    def _write(self, holder: str) -> None:
        self._lease = lease_in(self._client.put(f"{self._path}/{NAME}", self._body(self._lease, holder=holder)))

    def _read(self) -> Object | None:
        try:
            return lease_in(self._client.get(f"{self._path}/{NAME}"))
        except NotFoundError:
            return None

    def _wait_out(self, found: Object, say: Say, stop: Stop) -> bool:
        """Wait for a sign of life for as long as the holder claimed. False if the Lease is released before.

        A failed read shows none; `acquire` reads once more before it takes the Lease.
        """
        within_s = claimed_s(found) or self._duration_s
        say(
            f"Another instance ({holder_of(found)}) holds the Lease. Waiting up to {within_s:.0f} s for a sign of life."
        )
        began, seen = time.monotonic(), renewal_of(found)
        while time.monotonic() - began < within_s:
            # Measured before: Ctrl-C while a living holder was waited for took its Lease (decision 0004).
            if stop():
                raise _stopped()
            time.sleep(LOOK_EVERY_S)
            try:
                now = self._read()
            except VgpuctlError as error:
                if not error.passing:
                    raise
                sleep(error.after_s, stop)
                continue
            if now is None or not holder_of(now):
                return False
            if renewal_of(now) != seen:
                raise _busy(now)
        say("There was none: that instance ended without releasing the Lease. Going on.")
        return True

    def _take(self, found: Object | None) -> None:
        # Counted from before the request, because when the server wrote it is not known.
        began = time.monotonic()
        try:
            if found is None:
                self._lease = self._create()
            else:
                body = self._body(found, holder=self.identity)
                self._lease = lease_in(self._client.put(f"{self._path}/{NAME}", body))
        except ChangedMeanwhileError as error:
            raise BusyError(
                "Another instance has just taken the Lease.", hint="Run the command again later."
            ) from error
        self._renewed_s = began

    def _keep(self) -> None:
        # Decision 0004: the Lease is trusted for two thirds without a renewal, so one comes well before.
        pause_s = self._duration_s / 3
        while not self._released.wait(pause_s):
            with self._writing:
                if not self._released.is_set():
                    pause_s = max(self._duration_s / 3, self._renew())

    def _renew(self) -> float:
        """Renew the Lease. Return the pause that the server asks for; nothing is written during it."""
        began = time.monotonic()
        try:
            self._write_or_put_back()
            self._renewed_s = began
        except ChangedMeanwhileError:
            self._take_back(began)
        except VgpuctlError as error:
            return error.after_s
        except Exception as error:
            # Without this thread the Lease would expire silently; the next renewal may succeed.
            with contextlib.suppress(Exception):
                self._say(f"The Lease could not be renewed: {with_place(error)}")
        return 0.0

    def _write_or_put_back(self) -> None:
        """Write the Lease, or create it again if it was deleted.

        If another instance was quicker, our write is refused.
        """
        try:
            self._write(holder=self.identity)
        except NotFoundError:
            # Decision 0004: a Lease may be deleted in the middle of a switch. It was once reported as unheard for ever.
            self._lease = self._create()

    def _take_back(self, began: float) -> None:
        """Find out who wrote the Lease: we did, if only an answer was lost; otherwise the Lease is lost."""
        try:
            found = self._read()
        except VgpuctlError:
            return
        if found is None:
            # Deleted since the server refused our write; the next renewal creates it again.
            return
        if holder_of(found) != self.identity:
            self._lost = True
            self._released.set()
            return
        self._lease, self._renewed_s = found, began

    def _create(self) -> Object:
        return lease_in(create_in(self._client, self._namespace, self._path, self._body(None, holder=self.identity)))

    def _body(self, found: Object | None, *, holder: str) -> Object:
        return lease_body(found, holder, self._duration_s)


def _signs(lease: Object | None) -> tuple[str, object]:
    return holder_of(lease), renewal_of(lease)


def _stopped() -> StoppedError:
    return StoppedError("Stopped before the Lease was taken. Nothing was changed.")


def _busy(lease: Object | None) -> BusyError:
    return BusyError(
        f"Another instance is at work: {holder_of(lease)} renews its Lease.",
        hint="Wait for its end, or stop it. Then run the command again.",
    )

"""The acting Lease: only its holder writes. Taken for a plan that is not empty, released after it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable

from vgpuctl.kube.client import Client, NotFoundError, Object
from vgpuctl.kube.leases import NAME, claimed_s, holder_of, renewal_of, written
from vgpuctl.kube.patience import PATIENCE_S, patiently, rest_until
from vgpuctl.model.errors import BusyError, ChangedMeanwhileError, StoppedError, VgpuctlError, with_place

LOOK_EVERY_S = 0.2

Say = Callable[[str], None]
Stop = Callable[[], bool]


def _silence(_text: str) -> None:
    """Before there is a listener."""


class ActingLease:
    """Held by one instance at a time, judged by the monotonic clock alone."""

    def __init__(self, client: Client, namespace: str, duration_s: float = 15.0) -> None:
        self._client, self._duration_s = client, duration_s
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self.identity = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        self._lease: Object = {}
        self._renewed_s = float("-inf")
        self._lost = False
        self._released = threading.Event()
        self._writing = threading.Lock()
        self._say: Say = _silence

    def acquire(self, say: Say, stop: Stop) -> None:
        """Take it. A holder that renews it is at work: BusyError. One that does not is waited out. A server that cannot
        answer is asked again for at least as long. Once `stop` says so, nothing is taken: StoppedError."""
        self._say = say
        patience_s = max(PATIENCE_S, self._duration_s + LOOK_EVERY_S)
        try:
            patiently(lambda: self._become_holder(say, stop), LOOK_EVERY_S, patience_s, stop)
        except VgpuctlError as error:
            if not stop():
                raise
            # The answer to a write of ours may have been lost.
            self._release_what_is_there()
            raise _stopped() from error
        threading.Thread(target=self._keep, name="acting-lease", daemon=True).start()

    def _become_holder(self, say: Say, stop: Stop) -> None:
        found = self._read()
        holder = holder_of(found)
        if found is not None and holder not in {"", self.identity}:
            seen = renewal_of(found)
            self._wait_out(found, say, stop)
            found = self._read()
            if found is not None and holder_of(found) and (holder_of(found), renewal_of(found)) != (holder, seen):
                raise _busy(found)
        if stop():
            raise _stopped()
        self._take(found)

    def held(self) -> bool:
        """Half a duration of silence is the most that we trust: nobody else takes it before a whole one."""
        return not self._released.is_set() and time.monotonic() - self._renewed_s < self._duration_s * 2 / 3

    def lost(self) -> bool:
        return self._lost

    def release(self) -> None:
        """Say that nobody acts; a release that fails is waited out by the next one."""
        if self._released.is_set():
            return
        self._released.set()
        with self._writing:
            try:
                self._write(holder="")
            except ChangedMeanwhileError:
                self._release_what_is_there()
            except VgpuctlError:
                return

    def _release_what_is_there(self) -> None:
        """Our last renewal arrived although its answer did not: what is there is newer than what we know."""
        with contextlib.suppress(VgpuctlError):
            found = self._read()
            if found is not None and holder_of(found) == self.identity:
                self._lease = found
                self._write(holder="")

    def _write(self, holder: str) -> None:
        self._lease = self._client.put(f"{self._path}/{NAME}", self._body(self._lease, holder=holder))

    def _read(self) -> Object | None:
        try:
            return self._client.get(f"{self._path}/{NAME}")
        except NotFoundError:
            return None

    def _wait_out(self, found: Object, say: Say, stop: Stop) -> None:
        """Watch for a sign of life for as long as the holder said it needs. A look that fails shows none; whoever takes
        it looks once more."""
        patience = claimed_s(found) or self._duration_s
        say(
            f"Another instance ({holder_of(found)}) holds the Lease; waiting up to {patience:.0f} s for a sign of life."
        )
        began, seen = time.monotonic(), renewal_of(found)
        while time.monotonic() - began < patience:
            if stop():
                raise _stopped()
            time.sleep(LOOK_EVERY_S)
            try:
                now = self._read()
            except VgpuctlError as error:
                if not error.passing:
                    raise
                rest_until(time.monotonic() + error.after_s, stop)
                continue
            if now is None or not holder_of(now):
                return
            if renewal_of(now) != seen:
                raise _busy(now)
        say("It shows none: it ended without a release. Going on.")

    def _take(self, found: Object | None) -> None:
        began = time.monotonic()
        try:
            if found is None:
                self._lease = self._client.post(self._path, self._body(None, holder=self.identity))
            else:
                self._lease = self._client.put(f"{self._path}/{NAME}", self._body(found, holder=self.identity))
        except ChangedMeanwhileError as error:
            raise BusyError("Another instance took the Lease at this moment.", hint="Try again later.") from error
        self._renewed_s = began

    def _keep(self) -> None:
        pause_s = self._duration_s / 3
        while not self._released.wait(pause_s):
            with self._writing:
                if not self._released.is_set():
                    pause_s = max(self._duration_s / 3, self._renew())

    def _renew(self) -> float:
        """For how long the server asks not to be asked again; while that is too long, nothing is written."""
        began = time.monotonic()
        try:
            self._write_or_put_back()
            self._renewed_s = began
        except ChangedMeanwhileError:
            self._take_back(began)
        except VgpuctlError as error:
            return error.after_s
        except Exception as error:
            # Without this thread the Lease would grow old with nobody told; the next renewal may succeed.
            with contextlib.suppress(Exception):
                self._say(f"The Lease could not be renewed: {with_place(error)}")
        return 0.0

    def _write_or_put_back(self) -> None:
        """One that somebody deleted is made again. If another instance was quicker, the server refuses ours."""
        try:
            self._write(holder=self.identity)
        except NotFoundError:
            self._lease = self._client.post(self._path, self._body(None, holder=self.identity))

    def _take_back(self, began: float) -> None:
        """Somebody wrote it: we ourselves, where an answer was lost; else it is lost."""
        try:
            found = self._read()
        except VgpuctlError:
            return
        if found is None:
            # Deleted since the server refused our write; the next renewal puts it back.
            return
        if holder_of(found) != self.identity:
            self._lost = True
            self._released.set()
            return
        self._lease, self._renewed_s = found, began

    def _body(self, found: Object | None, *, holder: str) -> Object:
        return written(found, holder, self._duration_s)


def _stopped() -> StoppedError:
    return StoppedError("Stopped before the Lease was taken. Nothing was changed.")


def _busy(lease: Object) -> BusyError:
    return BusyError(
        f"Another instance is at work: {holder_of(lease)} renews its Lease.",
        hint="Wait until it has ended, or stop it; then run this again.",
    )

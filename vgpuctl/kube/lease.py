"""The acting Lease: only its holder writes. Taken for a plan that is not empty, released after it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from vgpuctl.kube.client import Client, NotFoundError, Object
from vgpuctl.kube.patience import PATIENCE_S, patiently, rest_until
from vgpuctl.model.errors import BusyError, ChangedMeanwhileError, VgpuctlError

NAME = "vgpuctl"
LOOK_EVERY_S = 0.2


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

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        """Take it. A holder that renews it is at work: BusyError. One that does not is waited out. A server that cannot
        answer is asked again for at least as long."""
        patience_s = max(PATIENCE_S, self._duration_s + LOOK_EVERY_S)
        patiently(lambda: self._become_holder(say, stop), LOOK_EVERY_S, patience_s, stop)
        threading.Thread(target=self._keep, name="acting-lease", daemon=True).start()

    def _become_holder(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        found = self._read()
        holder = _holder(found)
        if found is not None and holder not in {"", self.identity}:
            seen = found["spec"].get("renewTime")
            self._wait_out(found, say, stop)
            found = self._read()
            if (
                found is not None
                and _holder(found)
                and (_holder(found), found["spec"].get("renewTime")) != (holder, seen)
            ):
                raise _busy(found)
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
            if found is not None and _holder(found) == self.identity:
                self._lease = found
                self._write(holder="")

    def _write(self, holder: str) -> None:
        self._lease = self._client.put(f"{self._path}/{NAME}", self._body(self._lease, holder=holder))

    def _read(self) -> Object | None:
        try:
            return self._client.get(f"{self._path}/{NAME}")
        except NotFoundError:
            return None

    def _wait_out(self, found: Object, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        """Watch for a sign of life for as long as the holder said it needs. A look that fails shows none; whoever takes
        it looks once more."""
        patience = float(found["spec"].get("leaseDurationSeconds") or self._duration_s)
        say(f"Another instance ({_holder(found)}) holds the Lease; waiting up to {patience:.0f} s for a sign of life.")
        began, seen = time.monotonic(), found["spec"].get("renewTime")
        while time.monotonic() - began < patience and not stop():
            time.sleep(LOOK_EVERY_S)
            try:
                now = self._read()
            except VgpuctlError as error:
                if not error.passing:
                    raise
                rest_until(time.monotonic() + error.after_s, stop)
                continue
            if now is None or not _holder(now):
                return
            if now["spec"].get("renewTime") != seen:
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
            self._write(holder=self.identity)
            self._renewed_s = began
        except ChangedMeanwhileError:
            self._take_back(began)
        except VgpuctlError as error:
            return error.after_s
        return 0.0

    def _take_back(self, began: float) -> None:
        """Somebody wrote it: we ourselves, where an answer was lost; else it is lost."""
        try:
            found = self._read()
        except VgpuctlError:
            return
        if found is None or _holder(found) != self.identity:
            self._lost = True
            self._released.set()
            return
        self._lease, self._renewed_s = found, began

    def _body(self, found: Object | None, *, holder: str) -> Object:
        spec = dict((found or {}).get("spec") or {})
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec |= {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self._duration_s)),
            "renewTime": now,
        }
        if found is None or found["spec"].get("holderIdentity") != holder:
            spec |= {"acquireTime": now, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        metadata = {"name": NAME}
        if found is not None:
            metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def acting(client: Client, namespace: str) -> str:
    """For people: who holds it and, by the clock on the wall, renews it; "" for nobody. No write stands on this."""
    try:
        found = client.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{NAME}")
        renewed = datetime.fromisoformat(found["spec"]["renewTime"])
    except (NotFoundError, KeyError, TypeError, ValueError):
        return ""
    silent_s = (datetime.now(UTC) - renewed).total_seconds()
    return _holder(found) if silent_s <= float(found["spec"].get("leaseDurationSeconds") or 0) else ""


def _holder(lease: Object | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


def _busy(lease: Object) -> BusyError:
    return BusyError(
        f"Another instance is at work: {_holder(lease)} renews its Lease.",
        hint="Wait until it has ended, or stop it; then run this again.",
    )

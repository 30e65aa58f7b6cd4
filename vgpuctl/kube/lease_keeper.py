"""One Lease as one instance takes, renews and releases it. The acting Lease and the leading one share these rules."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from contextlib import suppress

from vgpuctl.basics.uptime import uptime_s
from vgpuctl.kube.client import Client, NotFoundError, Object
from vgpuctl.kube.leases import (
    GIVES_WAY,
    Marks,
    holder_of,
    lease_body,
    lease_in,
    leases_path,
    marked,
    new_lease,
    put_back,
)
from vgpuctl.kube.own_namespace import create_in
from vgpuctl.model.errors import BusyError, ChangedMeanwhileError, VgpuctlError

#: How often a write is made again that another one overtook. Only an ask can overtake a holder's write.
ATTEMPTS = 3
#: The pause before a failed renewal is tried again.
RETRY_AFTER_S = 1.0


# The official client's `leaderelection` (37.0.2) catches only ApiException. When the API was lost, `run()` ended,
# `onstopped_leading` was never called, and the work went on. It also has no release and trusts the wall clock.
class LeaseKeeper:
    """The Lease as one instance holds it. Only our own clock decides. It starts no thread."""

    def __init__(self, client: Client, namespace: str, name: str, duration_s: float) -> None:
        self._client, self._namespace, self._name, self.duration_s = client, namespace, name, duration_s
        self._path = leases_path(namespace)
        self.identity = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        #: The Lease as the server last showed it to us as its holder.
        self.lease: Object = {}
        #: Set while the Lease is not ours: before it is taken, once it is lost, and from its release on.
        self.over = threading.Event()
        self.over.set()
        self._renewed_s = float("-inf")
        self._lost = False
        self._writing = threading.Lock()

    def held(self) -> bool:
        """True while our last renewal is younger than two thirds of the duration.

        Others take the Lease only after all of it.
        """
        return self.left_s() > 0

    def left_s(self) -> float:
        """Return for how long the Lease is certainly ours if no renewal succeeds."""
        # Decision 0004: this is asked before each request, and no clock of another machine is compared.
        return 0.0 if self.over.is_set() else self._renewed_s + self.duration_s * 2 / 3 - uptime_s()

    def lost(self) -> bool:
        """True if the Lease was ours and is now certainly another instance's."""
        return self._lost

    def read(self) -> Object | None:
        try:
            return lease_in(self._client.get(f"{self._path}/{self._name}"), self._name)
        except NotFoundError:
            return None

    def look(self) -> None:
        """Read the Lease while we hold it, for what others have written on it. Only a refused renewal shows a loss."""
        found = self.read()
        # One answer may be wrong, so a Lease without us is left to the next renewal.
        if found is not None and holder_of(found) == self.identity:
            self.lease = found

    def take(self, found: Object | None, marks: Marks) -> None:
        """Take the Lease in the version that was found (None: there is none)."""
        with self._writing:
            # Counted from before the request, because when the server wrote it is not known.
            began_s = uptime_s()
            try:
                if found is None:
                    self._create(lease_body(new_lease(self._name), self.identity, self.duration_s, marks))
                else:
                    self._put(lease_body(found, self.identity, self.duration_s, marks))
            except ChangedMeanwhileError as error:
                raise BusyError(
                    "Another instance has just taken the Lease.", hint="Run the command again later."
                ) from error
            self._renewed_s, self._lost = began_s, False
            self.over.clear()

    def mark(self, found: Object, marks: Marks) -> None:
        """Write marks on a Lease in the version that was found, whoever holds it."""
        self._write(marked(found, marks))

    def renew(self) -> None:
        """Renew the Lease. If it is another's, it is lost."""
        with self._writing:
            for _ in range(ATTEMPTS):
                if self.over.is_set():
                    return
                began_s = uptime_s()
                try:
                    self._put(lease_body(self.lease, self.identity, self.duration_s, {}))
                except (ChangedMeanwhileError, NotFoundError):
                    self._find_out_why()
                else:
                    self._renewed_s = began_s
                    return

    def release(self) -> None:
        """Release the Lease. If that fails, the next instance waits it out."""
        if self.over.is_set():
            return
        self.over.set()
        with self._writing:
            try:
                self._release()
            except VgpuctlError:
                return

    def release_on_server(self) -> None:
        """Release the Lease if it is ours on the server: a write may have arrived although its answer did not."""
        found = self.read()
        if found is not None and holder_of(found) == self.identity:
            self.lease = found
            self._release()

    def _release(self) -> None:
        for _ in range(ATTEMPTS):
            try:
                return self._put(lease_body(self.lease, "", self.duration_s, {GIVES_WAY: None}))
            except ChangedMeanwhileError:
                found = self.read()
                if found is None or holder_of(found) != self.identity:
                    return None
                self.lease = found
        return None

    def _find_out_why(self) -> None:
        """Find out why our renewal was refused. It is then made again, unless the Lease is another's."""
        found = self.read()
        if found is None:
            self._put_back()
        elif holder_of(found) == self.identity:
            # Only the answer of an earlier renewal was lost, or an ask was written meanwhile.
            self.lease = found
        else:
            self._lose()

    def _put_back(self) -> None:
        """Create the Lease again that was deleted. If another instance was quicker, the server refuses that."""
        # After the whole duration another instance may have taken the Lease that was deleted since.
        if uptime_s() - self._renewed_s >= self.duration_s:
            return self._lose()
        # Decision 0004: a Lease may be deleted in the middle of a switch. It was once reported as unheard for ever.
        with suppress(ChangedMeanwhileError):
            self._create(put_back(lease_body(self.lease, self.identity, self.duration_s, {})))
        return None

    def _lose(self) -> None:
        self._lost = True
        self.over.set()

    def _put(self, body: Object) -> None:
        self.lease = self._write(body)

    def _write(self, body: Object) -> Object:
        return lease_in(self._client.put(f"{self._path}/{self._name}", body), self._name)

    def _create(self, body: Object) -> None:
        self.lease = lease_in(create_in(self._client, self._namespace, self._path, body), self._name)

"""An API server with one Lease: it refuses stale writes, and sometimes loses an answer."""

from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from vgpuctl.kube.client import NotFoundError
from vgpuctl.model.errors import ChangedMeanwhileError, PassingError

Object = dict[str, Any]


class Server:
    """One Lease, its resourceVersion, and answers that may be lost after the write was done.

    `holders` is its own log: who held the Lease after each write. `down`: it answers nothing.
    """

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.lose_answers = 0
        self.down: Exception | None = None
        self.asks_to_wait: list[float] = []
        self.faults: list[Exception] = []
        self.instead: list[Callable[[], Object]] = []
        self.holders: list[str] = []
        self.looks = 0
        self._lock = threading.RLock()
        self._versions, self._uids = itertools.count(1), itertools.count(1)

    def get(self, path: str) -> Object:
        with self._lock:
            self.looks += 1
            self._fail()
            if self.asks_to_wait:
                error = PassingError("too many requests")
                error.after_s = self.asks_to_wait.pop(0)
                raise error
            if self.instead:
                return self.instead.pop(0)()
            if self.lease is None:
                raise NotFoundError("no lease")
            return copy.deepcopy(self.lease)

    def post(self, path: str, body: Object) -> Object:
        with self._lock:
            self._fail()
            if self.lease is not None:
                raise ChangedMeanwhileError("there is one")
            return self._stored(body, f"uid-{next(self._uids)}")

    def put(self, path: str, body: Object) -> Object:
        with self._lock:
            self._fail()
            if self.faults:
                raise self.faults.pop(0)
            found = self.lease["metadata"] if self.lease is not None else {}
            given = body["metadata"]
            # Measured, kube-apiserver 1.36: a PUT creates a Lease, unless it has the uid of another one.
            if "uid" in given and given["uid"] != found.get("uid"):
                raise ChangedMeanwhileError("Precondition failed: UID in precondition")
            if found and given["resourceVersion"] != found["resourceVersion"]:
                raise ChangedMeanwhileError("it has changed")
            return self._stored(body, found.get("uid") or f"uid-{next(self._uids)}")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Answer nothing meanwhile."""
        with self._lock:
            yield

    def free(self) -> None:
        """As another instance that releases the Lease."""
        with self._lock:
            assert self.lease is not None
            self._stored(
                {**self.lease, "spec": {**self.lease["spec"], "holderIdentity": ""}}, self.lease["metadata"]["uid"]
            )

    def _fail(self) -> None:
        if self.down is not None:
            raise self.down

    def _stored(self, body: Object, uid: str) -> Object:
        metadata = {**body["metadata"], "uid": uid, "resourceVersion": str(next(self._versions))}
        self.lease = copy.deepcopy({**body, "metadata": metadata})
        self.holders.append(self.holder)
        if self.lose_answers > 0:
            self.lose_answers -= 1
            raise PassingError("the answer was lost")
        return copy.deepcopy(self.lease)

    @property
    def holder(self) -> str:
        assert self.lease is not None
        return str(self.lease["spec"]["holderIdentity"])

    def overtakings(self) -> list[tuple[str, str]]:
        """Return each change from one holder to another without a release between them."""
        changes = itertools.pairwise(self.holders)
        return [(before, after) for before, after in changes if before and after and before != after]

    @property
    def annotations(self) -> dict[str, str]:
        found: dict[str, str] = (self.lease or {"metadata": {}})["metadata"].get("annotations", {})
        return found


def stored(version: str, spec: Any) -> Object:
    return {"kind": "Lease", "metadata": {"name": "vgpuctl", "resourceVersion": version, "uid": "uid-1"}, "spec": spec}


class Line:
    """One instance's connection to the server. It can be cut, and requests can hang on it.

    `late_s`: how old an answer is when it arrives.
    """

    def __init__(self, server: Server, late_s: Callable[[], float] = lambda: 0.0) -> None:
        self._server, self._late_s = server, late_s
        self.error: Exception | None = None
        self.open = threading.Event()
        self.open.set()

    def get(self, path: str) -> Object:
        self._pass()
        try:
            return self._server.get(path)
        finally:
            time.sleep(self._late_s())

    def post(self, path: str, body: Object) -> Object:
        self._pass()
        return self._server.post(path, body)

    def put(self, path: str, body: Object) -> Object:
        self._pass()
        return self._server.put(path, body)

    def _pass(self) -> None:
        self.open.wait()
        if self.error is not None:
            raise self.error

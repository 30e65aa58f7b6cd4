"""Both simulated servers in this process, as functions of a world: a request in, a reply or a watch out."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.cookies import SimpleCookie
from inspect import isawaitable
from typing import Any

from tests.support.between.adversary import HangUp
from tests.support.between.messages import KUBERNETES, Asked, Lines, Reply
from vgpuctl.sim.kube.api.app import JsonCache, WatchEncoder
from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.api.request import JSON, Request
from vgpuctl.sim.kube.api.request import Reply as ApiReply
from vgpuctl.sim.kube.api.watching import Watch
from vgpuctl.sim.vcenter.wire import faults, requests, service
from vgpuctl.sim.vcenter.wire.api import Answer, Api, Caller
from vgpuctl.sim.vcenter.wire.metadata import version_of
from vgpuctl.sim.vcenter.wire.serialiser import fault_response
from vgpuctl.sim.vcenter.wire.sessions import COOKIE
from vgpuctl.sim.vcenter.wire.vmomi import vmodl
from vgpuctl.sim.world import World

_XML = ("Content-Type", 'text/xml; charset="utf-8"')


class Inside:
    """Only `changing` and the servers touch the world, one at a time. After `close` each connection ends."""

    def __init__(self, world: World) -> None:
        self._world, self._vcenter = world, Api(world.center, world.calls.count)
        self._changed = threading.Condition(threading.RLock())
        self._closed = False
        self._json = JsonCache()
        self._waits: Counter[str] = Counter()
        self._cancelled: set[str] = set()
        # Only a wait of no time runs in it, always under the lock.
        self._loop = asyncio.new_event_loop()

    @contextmanager
    def changing(self) -> Iterator[World]:
        with self._changed:
            yield self._world
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def forget(self) -> None:
        """Once nothing is asked any more."""
        self._loop.close()

    def answer(self, asked: Asked) -> Reply | Lines:
        with self._changed:
            if self._closed:
                raise HangUp
            answer = self._of_kubernetes if asked.server == KUBERNETES else self._of_vcenter
            found = answer(asked)
            self._changed.notify_all()
            return found

    def _of_kubernetes(self, asked: Asked) -> Reply | Lines:
        request = Request(
            method=asked.method,
            path=asked.path,
            query=asked.query,
            body=asked.body,
            content_type=asked.headers.get("content-type", ""),
            accept=asked.headers["accept"],
            agent=asked.headers["user-agent"],
        )
        try:
            found = self._world.api.answer(request)
        except ApiError as error:
            after = (("Retry-After", str(error.retry_after_s)),) if error.retry_after_s else ()
            return Reply(error.code, json.dumps(error.status()).encode(), after)
        if isinstance(found, Watch):
            return self._lines(found)
        assert isinstance(found, ApiReply)
        return Reply(found.code, json.dumps(found.body).encode(), (("Content-Type", JSON),))

    def _lines(self, watch: Watch) -> Lines:
        encoder = WatchEncoder(self._world.api, watch, self._json)

        def take(within_s: float) -> list[bytes] | None:
            with self._changed:
                if not (events := watch.take()) and not watch.ended:
                    self._changed.wait(within_s)
                    events = watch.take()
                if self._closed:
                    raise HangUp
                return [encoder.line(event) for event in events] if events or not watch.ended else None

        def close() -> None:
            with self._changed:
                self._world.api.watches.discard(watch)
                watch.close()

        return Lines(take, close)

    def _of_vcenter(self, asked: Asked) -> Reply:
        if asked.method == "GET":
            return Reply(200, service.versions_xml().encode(), (_XML,))
        cookie = SimpleCookie(asked.headers.get("cookie", "")).get(COOKIE)
        version = version_of(asked.headers.get("soapaction", ""))
        caller = Caller(cookie=cookie.value if cookie else None, version=version)
        try:
            found = self._called(requests.parse(asked.body), caller)
        except vmodl.MethodFault as fault:
            return Reply(500, _bytes(fault_response(fault, version)), (_XML,))
        session = found.call.session
        logged_in = found.request.method == "Login" and session
        cookies = (("Set-Cookie", f"{COOKIE}={session.key}; Path=/; HttpOnly"),) if logged_in and session else ()
        return Reply(200, _bytes(found.soap()), (_XML, *cookies))

    def _called(self, request: requests.Request, caller: Caller) -> Answer:
        collector = request.this._moId
        if request.method == "CancelWaitForUpdates" and self._waits[collector]:
            self._cancelled.add(collector)
        if request.method != "WaitForUpdatesEx":
            return self._vcenter.answer(request, caller, self._vcenter.effect_on(request))
        version, options = request.arguments
        until_s = time.monotonic() + (options.maxWaitSeconds or 0)
        now = type(options)(maxWaitSeconds=0, maxObjectUpdates=options.maxObjectUpdates)
        self._waits[collector] += 1
        try:
            return self._waited(replace(request, arguments=(version, now)), caller, until_s)
        finally:
            self._waits[collector] -= 1
            self._cancelled.discard(collector)

    def _waited(self, request: requests.Request, caller: Caller, until_s: float) -> Answer:
        """The simulator's own wait needs its event loop; here it is asked again after each change."""
        while True:
            answer = self._vcenter.answer(request, caller, self._vcenter.effect_on(request))
            assert isawaitable(answer.result)
            answer.result = self._loop.run_until_complete(_of(answer.result))
            if answer.result is not None or (left_s := until_s - time.monotonic()) <= 0:
                return answer
            if request.this._moId in self._cancelled:
                raise faults.canceled()
            self._changed.wait(left_s)
            if self._closed:
                raise HangUp


async def _of(result: Any) -> Any:
    return await result


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()

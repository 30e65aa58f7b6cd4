"""Threads of the product in virtual time: each is an actor, and only one of them ever runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from vgpuctl.sim.clock import Clock, Timer


class KilledError(BaseException):
    """The process of an actor has died. No `except Exception` of the product catches it."""


class Actor:
    """A thread that runs only while its stage waits for it. `doing`: an error that ended it, if any."""

    def __init__(self, clock: Clock, work: Callable[[], None], fails: Callable[[BaseException], None]) -> None:
        self._clock, self._work, self._fails = clock, work, fails
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._timer: Timer | None = None
        self.killed = self.ended = False
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()
        self.resume_in(0.0)

    def resume_in(self, seconds: float) -> None:
        """Let it run at that time, and no longer at the time that was planned."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if self.ended else self._clock.after(seconds, self._run)

    def rest(self, seconds: float) -> None:
        """Let virtual time pass. The actor itself calls this."""
        if self.killed:
            raise KilledError
        self.resume_in(seconds)
        self._back.release()
        self._go.acquire()
        if self.killed:
            raise KilledError

    def kill(self) -> None:
        """End it now, wherever it is. The running actor must not kill itself: it raises KilledError."""
        if not self.ended:
            self.killed = True
            self._run()

    def _run(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self.ended:
            self._go.release()
            self._back.acquire()

    def _live(self) -> None:
        self._go.acquire()
        try:
            if not self.killed:
                self._work()
        except KilledError:
            pass
        except BaseException as error:  # It would end in silence otherwise.
            with suppress(Exception):
                self._fails(error)
        finally:
            self.ended = True
            self._back.release()


class Stage:
    """All actors over one clock. `faults`: errors that ended an actor."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.faults: list[BaseException] = []
        self._actors: dict[threading.Thread, Actor] = {}

    def begin(self, work: Callable[[], None]) -> Actor:
        self._actors = {thread: actor for thread, actor in self._actors.items() if not actor.ended}
        actor = Actor(self.clock, work, self.faults.append)
        self._actors[actor._thread] = actor
        return actor

    def actor(self) -> Actor:
        return self._actors[threading.current_thread()]

    def rest(self, seconds: float) -> None:
        self.actor().rest(seconds)

    def end(self) -> None:
        for actor in tuple(self._actors.values()):
            actor.kill()


class VirtualLock:
    """A lock on which actors wait in virtual time: a real one would stop all of them."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._taken = stage, False

    def __enter__(self) -> None:
        while self._taken:
            self._stage.rest(0.1)
        self._taken = True

    def __exit__(self, *_: object) -> None:
        self._taken = False

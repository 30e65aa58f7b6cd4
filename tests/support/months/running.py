"""The product's own Runner in virtual time: its requests and its waiting are actors of a stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.months.stage import Actor, Stage
from vgpuctl.engine.ports import World
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.runner import Listener, Runner
from vgpuctl.engine.steering import Steering

#: How long it rests while nothing falls due: the product asks for its course once a second.
LOOK_S = 1.0
SOON_S = 0.05


class Crew:
    """The actors of one process. They die with it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.actors: list[Actor] = []

    def submit(self, work: Callable[..., None], *given: object) -> None:
        self.actors = [actor for actor in self.actors if not actor.ended]
        self.actors.append(self.stage.begin(lambda: work(*given)))

    def shutdown(self, **_: object) -> None:
        """Nothing ends with a pool: requests in flight are the process's."""

    def kill(self, but: Actor | None = None) -> None:
        for actor in self.actors:
            if actor is not but:
                actor.kill()


class VirtualRunner(Runner):
    """Looks, decisions, steering and reports are the product's; only threads and pauses are not real."""

    def __init__(self, crew: Crew, world: World, goal: Goal, listener: Listener, steering: Steering) -> None:
        super().__init__(world, goal, listener, steering)
        for pool in (self._pool, self._aside):
            pool.shutdown()
        crews: Any = crew
        self._crew, self._pool, self._aside = crew, crews, crews

    def _wait(self, _looked_s: float) -> None:
        clock = self._crew.stage.clock
        due_s = clock.next_due_s()
        self._crew.stage.rest(LOOK_S if due_s is None else min(LOOK_S, max(SOON_S, due_s - clock.now_s)))
        while not self._events.empty():
            event = self._events.get_nowait()
            if event is not None:
                self._state = event(self._state, clock.now_s)

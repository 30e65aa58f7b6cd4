"""One run of the product's reactor in virtual time: it looks, sends what it decides to, and lets time pass."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tests.support.clients import Later
from tests.support.overfull import overfull
from vgpuctl.engine.dispatcher import Moment, Send
from vgpuctl.engine.reactor import Caches, Decision, Goal, decide
from vgpuctl.engine.run_state import RunState
from vgpuctl.model.errors import VgpuctlError
from vgpuctl.model.requests import Request

if TYPE_CHECKING:
    from tests.support.rehearsal import Rehearsal

NIGHT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Ends:
    """How long a run may take. With `die_after` its process ends after so many writes, whatever was on its way; with
    `stop_after_s` somebody presses Ctrl-C."""

    until_s: float = NIGHT_S
    die_after: int | None = None
    stop_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Errand:
    """A request on its way. `run`: the number of the run that sent it. `hung_s`: how late it arrives, if it hung."""

    request: Request
    run: int = 0
    hung_s: float | None = None


class Run:
    """One process. What hung may arrive after its end."""

    def __init__(self, rehearsal: Rehearsal, goal: Goal, number: int) -> None:
        self._rehearsal, self._goal, self._number = rehearsal, goal, number
        self._clock = rehearsal.world.clock
        self._state, self._caches = RunState(), Caches()
        self._began_s = self._clock.now_s

    def to_its_end(self, ends: Ends) -> Decision:
        writes = 0
        while True:
            took_s = self._clock.now_s - self._began_s
            if ends.stop_after_s is not None and took_s >= ends.stop_after_s:
                self._state = replace(self._state, stopping=True)
            decision = self._look()
            if decision.finished or took_s > ends.until_s:
                return decision
            for send in decision.sends:
                if ends.die_after is not None and writes >= ends.die_after:
                    return decision
                writes += 1
                self._send(send)
            self._rehearsal.let_time_pass()

    def _look(self) -> Decision:
        fleet = self._rehearsal.picture()
        self._rehearsal.watch(fleet)
        self._rehearsal.broken += overfull(fleet)
        moment = Moment(now_s=self._clock.now_s, utc=self._clock.utc().isoformat())
        decision = decide(self._goal, fleet, self._state, moment, self._caches)
        self._state = decision.state
        self._rehearsal.looked(decision, fleet, self._clock.now_s - self._began_s)
        return decision

    def _send(self, send: Send) -> None:
        self._rehearsal.sent.append(str(send.key))
        if law := self._rehearsal.law_broken_by(send.request):
            self._rehearsal.broken.append(f"{send.key}: {law}")
        try:
            self._carry(send)
        except Later as later:
            self._clock.after(later.seconds, partial(self._carry, send, later.seconds))

    def _carry(self, send: Send, hung_s: float | None = None) -> None:
        try:
            answer = self._rehearsal.carry(Errand(send.request, self._number, hung_s))
        except VgpuctlError as error:
            self._remember(
                send, error=error.message, passing=error.passing, after_s=error.after_s, patience=error.patience
            )
        else:
            self._remember(send, task=answer.task, error="")

    def _remember(self, send: Send, **outcome: object) -> None:
        self._state = self._state.answered(send.key, self._clock.now_s, **outcome)

"""Runs the reactor against real servers. Requests block, so threads live here, and only here."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

from vgpuctl.engine.dispatcher import Moment, Send
from vgpuctl.engine.ends import ends
from vgpuctl.engine.ports import Report, StepReport, World
from vgpuctl.engine.reactor import Caches, Decision, Goal, decide
from vgpuctl.engine.run_state import RequestKey, RunState
from vgpuctl.engine.steering import Steering, Turn, beginning_anew
from vgpuctl.model.errors import BusyError, PassingError, VgpuctlError, with_place
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Plan, Step
from vgpuctl.model.step_id import StepId

LOOK_S = 0.5
#: Decision 0015: with 16, a switch of 8 hosts × 4 cards took 11.1 to 11.9 s; with 32, 11.3 to 12.1 s.
#: Each thread opens its own connections, and a TLS handshake costs about five requests.
REQUESTS_AT_ONCE = 16
#: Decision 0015: no step waits for marks on sleepers, and there may be 128 of them when a card becomes free.
PATIENT_AT_ONCE = 2
#: The longest rest after a look: a look that took long may itself have been held up by requests.
REST_S = 0.05
#: How often a run is asked whether it still does what is wanted.
STEER_EVERY_S = 1.0
#: The longest rest while requests are queued: the requests of another look would only queue behind them.
LINE_S = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a listener is shown after each look."""

    first: Plan
    decision: Decision
    fleet: Fleet
    done: dict[StepId, float]
    elapsed_s: float


class Listener(Protocol):
    def progress(self, progress: Progress) -> None: ...
    def say(self, text: str) -> None: ...


class Runner:
    """Carries out one goal until nothing is left to do or nothing more can be done."""

    def __init__(self, world: World, goal: Goal, listener: Listener, steering: Steering | None = None) -> None:
        self._world, self._goal, self._listener, self._steering = world, goal, listener, steering
        self._events: queue.SimpleQueue[Callable[[RunState, float], RunState] | None] = queue.SimpleQueue()
        self._state, self._caches = RunState(), Caches()
        self._began_s = world.clock.monotonic()
        self._first = Plan()
        self._done: dict[StepId, float] = {}
        self._begun: dict[StepId, tuple[Step, float]] = {}
        self._line: queue.SimpleQueue[Send] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(REQUESTS_AT_ONCE, thread_name_prefix="request")
        self._aside = ThreadPoolExecutor(PATIENT_AT_ONCE, thread_name_prefix="patient")
        self._stopping = self._admitting = False
        self._steer_at_s = self._began_s + STEER_EVERY_S

    def interrupt(self, *, leave_tasks: bool = False) -> None:
        """Start nothing more, withdraw queued requests, and end when the requests in flight have ended.

        vCenter's tasks are waited for too, unless they are left to a later run. It may be called from a signal handler.
        """
        self._stopping = True
        self._events.put(lambda state, _: replace(state, stopping=True, leaves_tasks=leave_tasks))

    def run(self) -> Report:
        stop_listening = self._world.observer.on_change(lambda: self._events.put(None))
        try:
            return self._until_finished()
        finally:
            stop_listening()
            for pool in (self._pool, self._aside):
                pool.shutdown(wait=False, cancel_futures=True)

    def _until_finished(self) -> Report:
        while True:
            looks_s = self._world.clock.monotonic()
            fleet = self._fleet()
            moment = Moment(now_s=self._world.clock.monotonic(), utc=self._world.clock.utc())
            decision = decide(self._goal, fleet, self._state, moment, self._caches)
            self._state = decision.state
            # Queued requests are not sent once the run stops, because of a person or of a server that is silent for too
            # long. Measured before this rule: of 64 cordons, 48 were sent after Ctrl-C.
            self._stopping = self._stopping or self._state.stopping
            self._follow(decision, fleet, moment.now_s)
            self._steer(fleet, moment.now_s)
            if decision.finished and not self._admitting:
                return self._report(moment.now_s, decision)
            for send in decision.sends:
                self._hand_over(send)
            self._wait(self._world.clock.monotonic() - looks_s)

    def _fleet(self) -> Fleet:
        """Return the fleet. While the Lease may be another's, it counts as stale: nothing is written."""
        # Decision 0004: a Lease that cannot be renewed holds writes back; one that another instance took ends the run.
        if self._world.lease.lost():
            raise BusyError("Another instance has taken the Lease over.", hint="Look with: vgpuctl status")
        fleet = self._world.observer.fleet()
        if self._world.lease.held():
            return fleet
        return replace(fleet, stale=(*fleet.stale, "the acting Lease"))

    def _follow(self, decision: Decision, fleet: Fleet, now_s: float) -> None:
        """Keep the times of steps: a step begins when it is first due, and is done when it is no longer missing."""
        if not self._first:
            self._first = decision.plan
        due = decision.state.due_since
        self._begun.update({s.id: (s, due[s.id]) for s in decision.plan if s.id in due})
        missing = decision.plan.ids
        for id in [id for id in self._begun if id not in missing]:
            step, since = self._begun[id]
            # That a step is done is seen in the fleet, never remembered (architecture.md, One look).
            if fleet.knows(step.subject) and step.done_in(fleet):
                self._done.setdefault(id, now_s - since)
                del self._begun[id]
        shown = dict(self._done)
        elapsed = now_s - self._began_s
        self._listener.progress(
            Progress(first=self._first, decision=decision, fleet=fleet, done=shown, elapsed_s=elapsed)
        )

    def _steer(self, fleet: Fleet, now_s: float) -> None:
        """Ask once a second whether the run still does what is wanted. A fault of that question changes nothing."""
        if self._steering is None or self._stopping or self._admitting or now_s < self._steer_at_s:
            return
        self._steer_at_s = now_s + STEER_EVERY_S
        try:
            turn = self._steering(fleet, self._goal, self._state)
        except Exception as error:
            self._listener.say(f"The wish could not be looked at again: {with_place(error)}")
            return
        if turn is not None and turn.stop:
            self._listener.say(turn.stop)
            self.interrupt(leave_tasks=True)
        elif turn is not None:
            self._admitting = True
            self._aside.submit(self._admit, turn, fleet)

    def _admit(self, turn: Turn, fleet: Fleet) -> None:
        """Write what must be written, then take up more hosts. This runs in a thread."""
        try:
            # Decision 0012: what cannot be written down is not begun.
            if turn.record:
                self._world.ledger.write(turn.record)
        except Exception as error:
            why = error.message if isinstance(error, VgpuctlError) else with_place(error)
            self._listener.say(f"The ledger could not be written: {why}")
            self._events.put(lambda state, _: self._admitted(Turn(), fleet, state))
        else:
            self._events.put(lambda state, _: self._admitted(turn, fleet, state))

    def _admitted(self, turn: Turn, fleet: Fleet, state: RunState) -> RunState:
        # In the loop's own thread: the next question about the course sees the new state.
        self._goal, self._admitting = turn.goal or self._goal, False
        return beginning_anew(state, fleet, turn.hosts)

    def _wait(self, looked_s: float) -> None:
        """Wait until something changed, or for a moment; then take in at once everything that has happened.

        If much changes at once, requests and their answers get twice the time that looks take, up to a moment.
        """
        begins_s = self._world.clock.monotonic()
        try:
            event = self._events.get(timeout=LOOK_S)
            while True:
                now_s = self._world.clock.monotonic()
                if event is not None:
                    self._state = event(self._state, now_s)
                # Decision 0015: what a burst takes is the cost of each call. Python runs one thread at a time.
                rest_s = min(2 * looked_s, REST_S) if self._line.empty() else LINE_S
                event = self._events.get(timeout=max(0.0, begins_s + rest_s - now_s))
        except queue.Empty:
            return

    def _hand_over(self, send: Send) -> None:
        """Queue the request for the pool, in a queue that can be inspected.

        Patient requests go beside it, so they delay no other.
        """
        # Decision 0015: marks on sleepers go beside, for they cost the starts 0.1 s in one queue with them.
        if send.patient:
            self._aside.submit(self._send, send)
        else:
            self._line.put(send)
            self._pool.submit(lambda: self._send(self._line.get()))

    def _send(self, send: Send) -> None:
        """Check the Lease, send, and queue the answer for the loop. This runs in a thread of the pool."""
        if self._stopping:
            self._events.put(lambda state, now_s: state.withdrawn(send.key, now_s))
            return
        try:
            # Decision 0004: two thirds of the Lease's duration without a renewal is the most that is trusted.
            if not self._world.lease.held():
                raise PassingError("The acting Lease could not be renewed in time.")
            answer = self._world.sender.send(send.request)
        except VgpuctlError as error:
            said = {"passing": error.passing, "after_s": error.after_s, "patience": error.patience}
            self._answered(send.key, error=error.message, **said)
        except Exception as error:  # A thread must never die in silence: the request counts as refused for good.
            self._answered(send.key, error=f"{type(error).__name__}: {error}", passing=False)
        else:
            self._answered(send.key, task=answer.task, error="", passing=False)

    def _answered(self, key: RequestKey, **outcome: object) -> None:
        self._events.put(lambda state, now_s: state.answered(key, now_s, **outcome))

    def _report(self, now_s: float, decision: Decision) -> Report:
        return Report(
            wish=self._goal.wish.name,
            hosts=ends(self._goal.wish, self._world.observer.fleet(), self._state, decision.plan),
            steps=tuple(StepReport(worker=id.subject, step=id.kind, seconds=s) for id, s in self._done.items()),
            seconds=now_s - self._began_s,
            interrupted=self._state.stopping and bool(decision.plan) and not self._state.unheard,
            unheard=self._state.unheard,
        )

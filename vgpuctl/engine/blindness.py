"""Time during which a server is not heard. It counts against no step's deadline, and it is bounded as a whole."""

from __future__ import annotations

from dataclasses import replace

from vgpuctl.engine.run_state import RunState


def with_blind_time(state: RunState, stale: tuple[str, ...], now_s: float) -> RunState:
    """Return the state at this look. Time since a blind look is added to the times since when steps are due."""
    # Decision 0019: two minutes without Kubernetes once turned a host back, for a mark on a sleeper.
    # Nothing is written while a server is not heard, so that time counts against no step.
    passed_s = now_s - state.looked_s if state.blind else 0.0
    due_since = state.due_since
    if passed_s:
        due_since = {name: since_s + passed_s for name, since_s in due_since.items()}
    blind_s = state.blind_s + passed_s
    return replace(state, looked_s=now_s, blind=bool(stale), blind_s=blind_s, due_since=due_since)


def stopped_if_blind_too_long(state: RunState, stale: tuple[str, ...], longest_s: float) -> RunState:
    """End an operation in order once it was blind for so long in all, and remember which servers it could not hear."""
    if not stale or state.stopping or state.blind_s < longest_s:
        return state
    # Decision 0019: the run ends in order. The same command goes on from there.
    return replace(state, stopping=True, unheard=stale)

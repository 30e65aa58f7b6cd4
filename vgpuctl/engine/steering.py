"""How a run is changed while it lasts: it takes up more hosts, or ends at the next safe point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.run_state import RunState
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.ledger import Changes
from vgpuctl.model.wish import Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What changes from now on. `stop`: why the run ends; "" if it goes on.

    `goal`: the new goal, in which `hosts` begin anew once `record` has been written.
    """

    stop: str = ""
    goal: Goal | None = None
    hosts: frozenset[str] = frozenset()
    record: Changes = field(default_factory=dict)


#: Asked about once a second, with the goal and the state of the run.
Steering = Callable[[Fleet, Goal, RunState], Turn | None]


def joined(wish: Wish, more: Wish) -> Wish:
    """Return the wish with more hosts. Everything else stays as the run began."""
    return replace(
        wish,
        workers={**wish.workers, **more.workers},
        awake_before=wish.awake_before | more.awake_before,
        departures={**wish.departures, **more.departures},
        drain_first=wish.drain_first | more.drain_first,
    )


def beginning_anew(state: RunState, fleet: Fleet, hosts: frozenset[str]) -> RunState:
    """Return the state in which these hosts have neither failed nor gone back yet."""
    workers = [worker.name for host in hosts for worker in fleet.on_host(host)]
    return replace(
        state.forget(workers),
        going_back={host: why for host, why in state.going_back.items() if host not in hosts},
        gave_up={host: why for host, why in state.gave_up.items() if host not in hosts},
        held_back={host: why for host, why in state.held_back.items() if host not in hosts},
    )

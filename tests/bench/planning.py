"""How planning bears a large estate: `python -m tests.bench.planning` prints times and how they grow.

From data, in one process: hosts with four cards, on which twelve workers run by day and four by night. Seconds of one
core, the best of a few rounds, with garbage looked for as seldom as in the program. It asserts nothing, for seconds
depend on the machine.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

from tests.support.fleets import CATALOGUE, QUARTER, WHOLE, card, node, pod, timetable, with_worker, worker
from tests.support.overfull import overfull
from vgpuctl.cli import look_for_garbage_seldom
from vgpuctl.engine.dispatcher import Moment
from vgpuctl.engine.reactor import Caches, Goal, decide
from vgpuctl.engine.run_state import RunState
from vgpuctl.model.fleet import Fleet, Power, Stranger
from vgpuctl.model.hosts import Host
from vgpuctl.model.wish import Wish
from vgpuctl.operations import look_ahead
from vgpuctl.planning.checks.refusals import refusals
from vgpuctl.planning.laws import broken_by
from vgpuctl.planning.planner import plan
from vgpuctl.planning.wishes import switch_wish

SIZES = (2500, 5000, 10_000)
CARDS = 4
ROUNDS = 3


def estate(workers: int) -> tuple[Fleet, Wish]:
    """As many workers on a fourth of that many cards: on each host twelve run by day, and four by night."""
    found, cards, strangers = [], {}, {}
    day: list[str] = []
    night: list[str] = []
    for number in range(workers // 16):
        host = f"esx-{number}"
        small = [f"{host}-day-{n}" for n in range(12)]
        whole = [f"{host}-night-{n}" for n in range(4)]
        found += [worker(n, QUARTER, host=host, node=node(n, pods=(pod(f"pod-{n}", n),))) for n in small]
        found += [worker(n, WHOLE, host=host, power=Power.SUSPENDED, on=False) for n in whole]
        cards[host] = [card(index, *small[index * 3 : index * 3 + 3]) for index in range(CARDS)]
        strangers[f"{host}-other"] = Stranger(name=f"{host}-other", host=host)
        day, night = day + small, night + whole
    hosts = {host: Host(name=host, cards=tuple(some), memory_mib=1 << 20) for host, some in cards.items()}
    some = Fleet(hosts=hosts, workers={w.name: w for w in found}, strangers=strangers)
    return some, switch_wish(some, CATALOGUE, timetable(day=tuple(day), night=tuple(night)), "night")


def after_the_stops(some: Fleet, wish: Wish) -> Fleet:
    todo = plan(some, wish)
    workers = dict(some.workers)
    for step in todo:
        if step.id.startswith(("Cordon/", "Drain/", "Suspend/", "MarkAsleep/")):
            alone = step.applied_to(Fleet(workers={step.subject: workers[step.subject]}))
            workers[step.subject] = alone.worker(step.subject)
    return Fleet(hosts=some.hosts, workers=workers, strangers=some.strangers)


def a_look(some: Fleet, wish: Wish) -> Any:
    return decide(Goal(wish=wish), some, RunState(), Moment(now_s=0.0, utc="2026-01-05T20:00:00Z"))


class AnotherLook:
    """The hosts where nothing changed are not planned anew."""

    def __init__(self, some: Fleet, wish: Wish) -> None:
        self._goal, self._caches = Goal(wish=wish), Caches()
        self._ways = cycle((Power.OFF, Power.SUSPENDED))
        self(some, wish)

    def __call__(self, some: Fleet, _: Wish) -> Any:
        some = with_worker(some, "esx-0-day-0", power=next(self._ways))
        return decide(self._goal, some, RunState(), Moment(now_s=0.0, utc="2026-01-05T20:00:00Z"), self._caches)


def laws(some: Fleet, wish: Wish) -> Any:
    steps = (step for step in plan(some, wish).ready())
    return [broken_by(request, some) for step in steps for request in step.requests(some, "")]


def main() -> None:
    look_for_garbage_seldom()
    found = [measured(size) for size in SIZES]
    print(f"{'':34}" + "".join(f"{size:>12}" for size in SIZES) + f"{'exponent':>12}")
    for what in found[0]:
        times = [each[what] for each in found]
        exponent = math.log(times[-1] / times[0]) / math.log(SIZES[-1] / SIZES[0])
        print(f"{what:34}" + "".join(f"{seconds:10.3f} s" for seconds in times) + f"{exponent:12.2f}")


def measured(size: int) -> dict[str, float]:
    """One estate at a time: whoever plans has no others in memory, through which the garbage collector would go."""
    now = estate(size)
    later = (after_the_stops(*now), now[1])
    return {
        "plan, the night to come": best(plan, *now),
        "refusals": best(refusals, *now),
        "look_ahead": best(look_ahead, *now),
        "one look, the night to come": best(a_look, *now),
        "one more look, one worker changed": best(AnotherLook(*now), *now),
        "one look, all asleep: the starts": best(a_look, *later),
        "the laws at each write then": best(laws, *later),
        "overfull": best(lambda some, _: overfull(some), *now),
    }


def best(do: Callable[[Fleet, Wish], Any], some: Fleet, wish: Wish) -> float:
    return min(timed(do, some, wish) for _ in range(ROUNDS))


def timed(do: Callable[[Fleet, Wish], Any], some: Fleet, wish: Wish) -> float:
    gc.collect()
    began = time.process_time()
    do(some, wish)
    return time.process_time() - began


if __name__ == "__main__":
    main()

"""An estate in virtual time whose hosts are of different speed, so that whoever waits for another host is seen."""

from __future__ import annotations

from tests.support.fleets import CATALOGUE, WHOLE, card, fleet, node, pod, timetable, worker
from tests.support.virtual import VirtualWorld
from vgpuctl.engine.reactor import Goal
from vgpuctl.model.fleet import Power, Worker
from vgpuctl.model.hosts import Card
from vgpuctl.planning.wishes import former_wish, switch_wish

#: How many times as long as usual stops take on a host. Starts make up for it: the longest chain is the same on all.
STOPS = (0.5, 0.75, 1.0, 1.25, 1.5)


def night_of(hosts: int, cards: int) -> VirtualWorld:
    """By day four workers with a pod each on each card; by night one, which is suspended so far."""
    workers: list[Worker] = []
    seats: dict[str, list[Card]] = {}
    slow: dict[str, float] = {}
    day: list[str] = []
    night: list[str] = []
    for number in range(hosts * cards):
        host, stops = f"esx-{number // cards}", STOPS[number // cards % len(STOPS)]
        small, whole = [f"day-{number}-{n}" for n in range(4)], f"night-{number}"
        workers += [worker(name, host=host, node=node(name, pods=(pod(f"pod-{name}", name),))) for name in small]
        workers.append(worker(whole, WHOLE, host=host, power=Power.SUSPENDED, on=False))
        seats.setdefault(host, []).append(card(number % cards, *small))
        slow |= {**dict.fromkeys(small, stops), whole: 2 - stops}
        day, night = day + small, [*night, whole]
    some = fleet(*workers, cards=seats)
    wish = switch_wish(some, CATALOGUE, timetable(day=tuple(day), night=tuple(night)), "night")
    return VirtualWorld(some, Goal(wish=wish, former=former_wish(wish)), slow=lambda name: slow.get(name, 1.0))


def chain_s(world: VirtualWorld) -> float:
    """Drain, suspend, resume and return, on each host."""
    return world.drain_s + world.suspend_s + world.start_s + world.back_s


def took_s(world: VirtualWorld) -> float:
    """From the first write to the last uncordon."""
    return max(when for when, key in world.sent if key.startswith("Uncordon/")) - world.sent[0][0]

"""Takes out of a wish what people hold, and what finds no room because of it. For the daemon: a command refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from math import prod
from typing import NamedTuple

from vgpuctl.basics.moments import moment
from vgpuctl.basics.names import natural
from vgpuctl.basics.phrases import folded_names
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hold import order_phrase
from vgpuctl.model.orders import Order
from vgpuctl.model.wish import Wish, WorkerWish
from vgpuctl.planning.cards.releases import begun, vgpus_wished
from vgpuctl.planning.checks.card_room import Moves, against_room
from vgpuctl.planning.planner import would_move

#: Ways to leave workers asleep that are compared for the fewest. Beyond them, workers are added one by one.
MOST_WAYS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """What holds keep from happening on a host.

    `workers`: all workers that stay as they are against the wish. `until`: when the first of the holds ends.
    """

    host: str
    sentence: str
    workers: tuple[str, ...]
    until: datetime | None = None


class Keeping(NamedTuple):
    """Why a worker is kept as it is, in words for people, and until when."""

    phrase: str
    until: datetime | None


class HostPart(NamedTuple):
    """What holds do to one host's part of a wish.

    `held`: all its held workers. `stuck`: of these, the workers that the wish would move. `asleep`: workers that find
    no room because of them. `awake`: workers that would leave for nothing.
    """

    held: Mapping[str, Keeping]
    stuck: tuple[Worker, ...] = ()
    asleep: tuple[Worker, ...] = ()
    awake: tuple[Worker, ...] = ()


def with_holds(fleet: Fleet, wish: Wish, now: datetime) -> tuple[Wish, tuple[Blocked, ...]]:
    """Return the wish without held workers, and without workers that find no room because of them.

    Maintenance of a host holds all its workers. The wish for hosts without holds stays as it is.
    """
    workers: dict[str, WorkerWish] = dict(wish.workers)
    blocked = []
    for host, held in _held_by_host(fleet, wish, now).items():
        part = _part(fleet, wish, host, held)
        # A label would be harmless, but "no write on a held node" is the promise that a person can rely on.
        for name in (*held, *(each.name for each in (*part.asleep, *part.awake))):
            del workers[name]
        # An earlier look may have cordoned a worker that now stays awake: it is uncordoned again.
        workers |= {w.name: _given_back(wish, w) for w in (*part.asleep, *part.awake) if w.on and begun(w)}
        if part.stuck:
            blocked.append(_blocked(wish, host, part))
    return replace(wish, workers=workers, workloads=wish.workloads if workers else {}), tuple(blocked)


def holds_end(fleet: Fleet) -> datetime | None:
    """Return when the first hold ends; None if none does. Nothing reports that end, so a look is due then."""
    ends = (worker.hold.until for worker in fleet.workers.values() if worker.hold is not None)
    return min(filter(None, ends), default=None)


def _held_by_host(fleet: Fleet, wish: Wish, now: datetime) -> dict[str, dict[str, Keeping]]:
    found: dict[str, dict[str, Keeping]] = {}
    for name in wish.workers:
        worker = fleet.workers.get(name)
        if worker is not None and (keeping := _keeping(worker, now, fleet.orders.maintenance.get(worker.host))):
            found.setdefault(worker.host, {})[name] = keeping
    return found


def _keeping(worker: Worker, now: datetime, order: Order | None) -> Keeping | None:
    """Return why the worker is kept: by its own hold first, else by the maintenance of its host."""
    if worker.hold is not None and worker.hold.active(now):
        hold = worker.hold
        return Keeping(hold.phrase(moment(hold.until, now) if hold.until else ""), hold.until)
    if order is not None and order.active(now):
        until = moment(order.until, now) if order.until else ""
        return Keeping(order_phrase("under maintenance", order.who, until, order.reason), order.until)
    return None


def _part(fleet: Fleet, wish: Wish, host: str, held: Mapping[str, Keeping]) -> HostPart:
    ours = sorted((w for w in fleet.on_host(host) if w.name in wish.workers), key=lambda worker: natural(worker.name))
    stuck = tuple(worker for worker in ours if worker.name in held and would_move(fleet, wish, worker))
    if not stuck:
        return HostPart(held)
    free = [worker for worker in ours if worker.name not in held]
    # If the wish has no room without any hold either, the hold is not to blame: the refusal says why.
    asleep = () if _refused(fleet, wish, host, ours) else _without_room(fleet, wish, host, free)
    left = [worker for worker in free if worker not in asleep]
    waits = asleep or any(wish.workers[worker.name].awake and not worker.on for worker in stuck)
    return HostPart(held, stuck, asleep, tuple(_leaving_for_nothing(fleet, wish, host, left)) if waits else ())


def _refused(fleet: Fleet, wish: Wish, host: str, workers: Iterable[Worker]) -> bool:
    return host in fleet.hosts and any(against_room(fleet, wish, fleet.hosts[host], list(workers)))


def _without_room(fleet: Fleet, wish: Wish, host: str, free: list[Worker]) -> tuple[Worker, ...]:
    """Return the fewest workers without which the others find room. Starts that are under way come first."""
    if not _refused(fleet, wish, host, free):
        return ()
    starting = [worker for worker in free if worker.name in Moves.of(wish, free).carrying]
    starting.sort(key=lambda worker: worker.busy_with is None)
    for out in _ways_to_leave_out(wish, starting):
        if not _refused(fleet, wish, host, [worker for worker in free if worker not in out]):
            return out
    out = tuple(starting)
    for worker in starting:
        fewer = tuple(each for each in out if each is not worker)
        out = out if _refused(fleet, wish, host, [each for each in free if each not in fewer]) else fewer
    return out


def _ways_to_leave_out(wish: Wish, starting: list[Worker]) -> Iterator[tuple[Worker, ...]]:
    """Yield sets of workers, small ones first. Of workers with the same needs, the last ones are left out.

    It yields none if there are too many.
    """
    groups: dict[object, list[Worker]] = {}
    for worker in starting:
        groups.setdefault((vgpus_wished(wish, worker), worker.on, worker.memory_mib), []).append(worker)
    if prod(len(group) + 1 for group in groups.values()) > MOST_WAYS:
        return
    for counts in sorted(
        product(*(range(len(group) + 1) for group in groups.values())), key=lambda each: (sum(each), each)
    ):
        parts = (group[len(group) - number :] for group, number in zip(groups.values(), counts, strict=True))
        yield tuple(worker for part in parts for worker in part)


def _leaving_for_nothing(fleet: Fleet, wish: Wish, host: str, left: list[Worker]) -> Iterator[Worker]:
    """Yield the workers that no start needs gone. Workers that have begun to leave are the first to go on."""
    leaving = [worker for worker in left if worker.on and wish.workers[worker.name].awake is False]
    for worker in sorted(leaving, key=begun):
        others = [each for each in left if each is not worker]
        if not _refused(fleet, wish, host, others):
            left = others
            yield worker


def _given_back(wish: Wish, worker: Worker) -> WorkerWish:
    return replace(wish.workers[worker.name], awake=True, vgpus=None, change=False, label=True, sleep=None)


def _blocked(wish: Wish, host: str, part: HostPart) -> Blocked:
    stay = (*part.stuck, *part.asleep, *part.awake)
    ends = (part.held[worker.name].until for worker in part.stuck)
    return Blocked(
        host=host,
        sentence="; ".join(_clauses(wish, part)),
        workers=tuple(worker.name for worker in stay),
        until=min(filter(None, ends), default=None),
    )


def _clauses(wish: Wish, part: HostPart) -> Iterator[str]:
    """Yield `worker-5 stays asleep: worker-1 keeps its card, held by anna until 18:00 (driver test)`, and the rest."""
    keepers = [worker for worker in part.stuck if worker.on and part.asleep]
    if keepers:
        causes = (
            f"{_names(group)} {'keeps its card' if len(group) == 1 else 'keep their cards'}, {phrase}"
            for phrase, group in _grouped((part.held[each.name].phrase, each) for each in keepers)
        )
        yield f"{' and '.join(_staying(wish, part.asleep))}: {' and '.join(causes)}"
    others = (worker for worker in part.stuck if worker not in keepers)
    for phrase, group in _grouped((part.held[each.name].phrase, each) for each in others):
        yield f"{' and '.join(_staying(wish, group))}, {phrase}"
    yield from _staying(wish, part.awake)


def _staying(wish: Wish, workers: Iterable[Worker]) -> Iterator[str]:
    """Yield `worker-5 stays asleep`, for workers in the same state together."""
    for state, group in _grouped((_state(wish, each), each) for each in workers):
        yield f"{_names(group)} {'stays' if len(group) == 1 else 'stay'} {state}"


def _state(wish: Wish, worker: Worker) -> str:
    wanted = wish.workers[worker.name].awake
    return {(False, True): "asleep", (True, False): "awake"}.get((worker.on, bool(wanted)), "unchanged")


def _names(workers: Iterable[Worker]) -> str:
    return folded_names(worker.name for worker in workers)


def _grouped(pairs: Iterable[tuple[str, Worker]]) -> Iterable[tuple[str, list[Worker]]]:
    found: dict[str, list[Worker]] = {}
    for key, worker in pairs:
        found.setdefault(key, []).append(worker)
    return found.items()

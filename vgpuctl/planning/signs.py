"""Signs: what a failed switch hangs on, as short texts that a ConfigMap keeps, and what of it has changed since."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from vgpuctl.basics.fingerprint import fingerprint
from vgpuctl.model.fleet import Fleet, Node
from vgpuctl.model.pods import Budget, Disk, Pod
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import Timetable

#: A ConfigMap holds 1 MiB, and the signs of some hundred failed hosts share one.
MOST_SIGNS, MOST_BYTES = 30, 4096
MOST_DIGITS = 10
GONE = "gone"
CONNECTED = "connected"
ON_NODE = " on "


class Kind(StrEnum):
    """The kinds of signs. If a host has too many signs, the first kinds are kept."""

    FILES = "files"
    HOST = "host"
    CARDS = "card-room"
    BUDGET = "budget"
    POD = "pod"
    VOLUME = "volume"
    WORKER = "worker"
    TASK = "task"


#: By the key of each sign, such as `budget default/gateway`, what it was.
Signs = Mapping[str, str]
#: For each budget, how many evictions this try has taken from it.
Spent = Mapping[tuple[str, str], int]

#: What a way back changes by itself: workers wake or fall asleep again, and so does the load of their cards.
_MOVED_BY_THE_WAY_BACK = (Kind.WORKER, Kind.TASK, Kind.CARDS)


def host_key(host: str) -> str:
    return f"{Kind.HOST} {host}"


def cards_key(host: str) -> str:
    return f"{Kind.CARDS} {host}"


def worker_keys(worker: str) -> tuple[str, str]:
    return f"{Kind.WORKER} {worker}", f"{Kind.TASK} {worker}"


def pod_key(worker: str, pod: Pod) -> str:
    return f"{Kind.POD} {pod.namespace}/{pod.name}{ON_NODE}{worker}"


def budget_key(budget: Budget) -> str:
    return f"{Kind.BUDGET} {budget.namespace}/{budget.name}"


def volume_key(worker: str, disk: Disk) -> str:
    return f"{Kind.VOLUME} {disk.claim or disk.volume}{ON_NODE}{worker}"


def files_sign(catalogue: Catalogue, timetable: Timetable) -> str:
    """Return what the files say, as one short text. Their layout and comments do not count."""
    return fingerprint(catalogue, timetable)


def signs_of(fleet: Fleet, keys: Iterable[str], spent: Spent) -> dict[str, str]:
    """Return the signs under these keys at the moment of a failure.

    `spent`: what this very try took from the budgets. If a budget gives that back later, nothing is new.
    """
    found = {key: _read(fleet, key) for key in dict.fromkeys(keys)}
    for (namespace, name), taken in spent.items():
        key = f"{Kind.BUDGET} {namespace}/{name}"
        budget = _budget(fleet, f"{namespace}/{name}") if key in found else None
        if budget is not None:
            # Otherwise each failed try would give its budget back, and so cause the next try.
            most = max(budget.expected - budget.desired, budget.allowed)
            found[key] = str(min(budget.allowed + taken, most))
    return bounded({key: value for key, value in found.items() if value})


def bounded(signs: Signs) -> dict[str, str]:
    """Return as many signs as a host may keep. What is left out is tried again only after a pause."""
    order = list(Kind)
    kept: dict[str, str] = {}
    size = 0
    for key in sorted(signs, key=lambda key: order.index(_parts(key)[0])):
        size += len(key.encode()) + len(signs[key].encode())
        if len(kept) == MOST_SIGNS or size > MOST_BYTES:
            break
        kept[key] = signs[key]
    return kept


def at_rest(fleet: Fleet, signs: Signs) -> dict[str, str]:
    """Return the signs after the way back: what it changed itself is taken as it is now."""
    now = {key: _read(fleet, key) if _parts(key)[0] in _MOVED_BY_THE_WAY_BACK else signs[key] for key in signs}
    return {key: value for key, value in now.items() if value}


def unmoved(signs: Signs) -> dict[str, str]:
    """Return the signs that the way back does not change by itself. They may be kept before it has ended."""
    return {key: value for key, value in signs.items() if _parts(key)[0] not in _MOVED_BY_THE_WAY_BACK}


def changed_since(fleet: Fleet, signs: Signs, files: str = "") -> tuple[str, ...]:
    """Return what has changed since, in words; () if nothing has, or while a server is not heard.

    `files`: the files' sign now. Without it, they count as unchanged.
    """
    if fleet.stale:
        return ()
    return tuple(words for key, before in signs.items() if (words := _change(fleet, key, before, files)))


def pods_failed_on(signs: Signs) -> frozenset[str]:
    """Return the UIDs of the pods among the signs."""
    return frozenset(uid for key, uid in signs.items() if _parts(key)[0] is Kind.POD and uid != GONE)


def _parts(key: str) -> tuple[Kind, str]:
    kind, _, name = key.partition(" ")
    # An entry may be from a release with other kinds. An unknown sign never changes, like files without a sign.
    return (Kind(kind), name) if name and kind in set(Kind) else (Kind.FILES, name)


def _read(fleet: Fleet, key: str) -> str:
    kind, name = _parts(key)
    return _READERS[kind](fleet, name) if kind in _READERS else ""


def _change(fleet: Fleet, key: str, before: str, files: str) -> str:
    kind, name = _parts(key)
    if key == Kind.FILES:
        return "the files have changed" if files and files != before else ""
    now = _read(fleet, key)
    if kind not in _WORDS or now == before:
        return ""
    return _WORDS[kind](name, before, now)


def _node(fleet: Fleet, name: str) -> tuple[str, Node | None]:
    thing, _, worker = name.rpartition(ON_NODE)
    found = fleet.find(worker)
    return thing, found.node if found else None


def _pod(fleet: Fleet, name: str) -> str:
    called, node = _node(fleet, name)
    pods = node.pods if node else ()
    return next((pod.uid for pod in pods if f"{pod.namespace}/{pod.name}" == called), GONE)


def _volume(fleet: Fleet, name: str) -> str:
    called, node = _node(fleet, name)
    return "attached" if node and any(called in (disk.claim, disk.volume) for disk in node.disks) else GONE


def _budget(fleet: Fleet, name: str) -> Budget | None:
    return next((each for each in fleet.budgets if f"{each.namespace}/{each.name}" == name), None)


def _allowed(fleet: Fleet, name: str) -> str:
    budget = _budget(fleet, name)
    if budget is None:
        return GONE
    # Kubernetes: until its controller has seen the last change of a budget, its counts are old.
    return str(budget.allowed) if budget.seen else "0"


def _worker(fleet: Fleet, name: str) -> str:
    worker = fleet.find(name)
    return " ".join((worker.power, *sorted(worker.vgpus))) if worker else GONE


def _task(fleet: Fleet, name: str) -> str:
    worker = fleet.find(name)
    return worker.busy_with.kind if worker and worker.busy_with else ""


def _host(fleet: Fleet, name: str) -> str:
    host = fleet.hosts.get(name)
    if host is None:
        return GONE
    return "disconnected" if not host.connected else "in maintenance" if host.maintenance else CONNECTED


def _cards(fleet: Fleet, name: str) -> str:
    # vSphere: `graphicsInfo` may lag behind, so power states count and not the host's own books.
    host = fleet.hosts.get(name)
    cards = [(card.pci_id, card.model, card.shared, card.mode) for card in host.cards] if host else []
    workers = {vm.name: sorted(vm.vgpus) for vm in fleet.on_host(name) if vm.on and vm.vgpus}
    strangers = {vm.name: sorted(vm.vgpus) for vm in fleet.strangers_on(name) if vm.on and vm.vgpus}
    return fingerprint(cards, workers, strangers)


_READERS: Mapping[Kind, Callable[[Fleet, str], str]] = {
    Kind.HOST: _host,
    Kind.CARDS: _cards,
    Kind.BUDGET: _allowed,
    Kind.POD: _pod,
    Kind.VOLUME: _volume,
    Kind.WORKER: _worker,
    Kind.TASK: _task,
}


def _pod_words(name: str, before: str, now: str) -> str:
    called, _, worker = name.rpartition(ON_NODE)
    if before == GONE:
        return ""
    return f"pod {called} has left {worker}" if now == GONE else f"pod {called} on {worker} is another one now"


def _volume_words(name: str, before: str, now: str) -> str:
    called, _, worker = name.rpartition(ON_NODE)
    return f"volume {called} has left {worker}" if now == GONE else ""


def _budget_words(name: str, before: str, now: str) -> str:
    if now == GONE:
        return f"budget {name} is gone"
    # People can write anything into a ConfigMap. What is no number is read as more than any budget allows.
    most = int(before) if before.isdecimal() and len(before) < MOST_DIGITS else math.inf
    if int(now) <= most:
        return ""
    return f"budget {name} allows {'an eviction again' if before == '0' else 'more evictions than before'}"


def _worker_words(name: str, before: str, now: str) -> str:
    if GONE in (before, now):
        return f"worker {name} is {'gone' if now == GONE else 'there again'}"
    was, (power, *vgpus) = before.partition(" ")[0], now.split()
    return f"worker {name} is {power}" if power != was else f"worker {name} carries {' '.join(vgpus) or 'no vGPU'}"


def _task_words(name: str, before: str, now: str) -> str:
    return f"vCenter has ended {before} on {name}" if not now else ""


def _host_words(name: str, before: str, now: str) -> str:
    # Only a change for the better lets a new try hope for more.
    return f"host {name} is no longer {before}" if now == CONNECTED else ""


def _cards_words(name: str, before: str, now: str) -> str:
    return f"the cards of {name} hold other VMs, or are set differently"


_WORDS: Mapping[Kind, Callable[[str, str, str], str]] = {
    Kind.HOST: _host_words,
    Kind.CARDS: _cards_words,
    Kind.BUDGET: _budget_words,
    Kind.POD: _pod_words,
    Kind.VOLUME: _volume_words,
    Kind.WORKER: _worker_words,
    Kind.TASK: _task_words,
}

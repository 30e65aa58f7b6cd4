"""The objects: one generic store with versions, a log of changes, indexes and subscriptions."""

from __future__ import annotations

import random
import uuid
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.kube.api import errors
from vgpuctl.sim.kube.api.kinds import STORED, Kind
from vgpuctl.sim.kube.objects import Object, at, copied, timestamp

Key = tuple[str, str]
OWNER = "owner"
#: Kubernetes' characters for the ends of generated names: no vowels, so that no words arise.
SAFE_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log. Objects in it are shared: nobody may alter them."""

    version: int
    plural: str
    type: str
    object: Object
    before: Object | None


Listener = Callable[[Change], None]


class Shelf:
    """All objects of one kind, with the log of their changes and their indexes."""

    def __init__(self, kind: Kind, log_length: int) -> None:
        self.kind = kind
        self.objects: dict[Key, Object] = {}
        self.log: deque[Change] = deque(maxlen=log_length)
        self.forgotten = 0
        self.listeners: list[Listener] = []
        self._indexes: dict[str, dict[str, dict[Key, Object]]] = {field: {} for field in (*kind.indexed, OWNER)}
        self._order: list[Key] | None = None

    def order(self, namespace: str = "") -> list[Key]:
        """The keys in their order, of one namespace or of all; sorted anew only after one came or went."""
        if self._order is None:
            self._order = sorted(self.objects)
        if not namespace:
            return self._order
        return self._order[bisect_left(self._order, (namespace, "")) : bisect_left(self._order, (namespace + "\0", ""))]

    def put(self, change: Change) -> None:
        key = key_of(change.object)
        if change.type != "MODIFIED":
            self._order = None
        if change.before is not None:
            self._unindex(key, change.before)
        if change.type == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = change.object
            for field, value in self._entries(change.object):
                self._indexes[field].setdefault(value, {})[key] = change.object
        if len(self.log) == self.log.maxlen:
            self.forgotten = self.log[0].version
        self.log.append(change)

    def where(self, field: str, value: str) -> list[Object]:
        return list(self._indexes[field].get(value, {}).values())

    def _unindex(self, key: Key, item: Object) -> None:
        for field, value in self._entries(item):
            entries = self._indexes[field][value]
            entries.pop(key, None)
            if not entries:
                del self._indexes[field][value]

    def _entries(self, item: Object) -> Iterable[tuple[str, str]]:
        for field in self.kind.indexed:
            if value := at(item, field):
                yield field, str(value)
        for owner in item["metadata"].get("ownerReferences") or []:
            yield OWNER, owner["uid"]


def key_of(item: Object) -> Key:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def path_of(plural: str, item: Object) -> tuple[str, str, str]:
    """Return what names an object in the store: its kind, namespace and name."""
    return plural, *key_of(item)


class Store:
    """Objects by kind (its plural), namespace and name. What it hands out is shared and must not be altered."""

    def __init__(self, clock: Clock, chance: random.Random, log_length: int = 20_000) -> None:
        self.version = 0
        self.compacted = 0
        self._clock = clock
        self._chance = chance
        self._suffixes: set[str] = set()
        self._shelves = {plural: Shelf(kind, log_length) for plural, kind in STORED.items()}

    def get(self, plural: str, namespace: str, name: str) -> Object | None:
        return self._shelves[plural].objects.get((namespace, name))

    def all(self, plural: str) -> list[Object]:
        """Every object of a kind, in no order that means something."""
        return list(self._shelves[plural].objects.values())

    def sorted(self, plural: str, namespace: str = "") -> list[Object]:
        shelf = self._shelves[plural]
        return [shelf.objects[key] for key in shelf.order(namespace)]

    def where(self, plural: str, field: str, value: str) -> list[Object]:
        """Objects by an indexed field, or by the uid of an owner (`OWNER`), by name."""
        return sorted(self.some(plural, field, value), key=key_of)

    def some(self, plural: str, field: str, value: str) -> list[Object]:
        """The same in no order that means something."""
        return self._shelves[plural].where(field, value)

    def create(self, plural: str, item: Object) -> Object:
        """Store a new object; the store makes `item` its own. A given creation time is kept: worlds have a past."""
        shelf, metadata = self._shelves[plural], item["metadata"]
        if key_of(item) in shelf.objects:
            raise errors.already_exists(shelf.kind, metadata["name"])
        metadata.setdefault("uid", self.new_uid())
        metadata.setdefault("creationTimestamp", timestamp(self._clock.utc()))
        if shelf.kind.generations:
            metadata["generation"] = 1
        return self._put(shelf, "ADDED", item, None)

    def update(self, plural: str, item: Object) -> Object:
        """Replace an object; a stale resourceVersion is refused, and no difference changes nothing."""
        shelf, metadata = self._shelves[plural], item["metadata"]
        before = shelf.objects.get(key_of(item))
        if before is None:
            raise errors.not_found(shelf.kind, metadata["name"])
        present = before["metadata"]["resourceVersion"]
        if metadata.get("resourceVersion") not in (None, "", "0", present):
            raise errors.conflict(shelf.kind, metadata["name"])
        metadata["resourceVersion"] = present
        if item == before:
            return before
        if shelf.kind.generations and item.get("spec") != before.get("spec"):
            metadata["generation"] = before["metadata"].get("generation", 0) + 1
        return self._put(shelf, "MODIFIED", item, before)

    def edit(self, plural: str, namespace: str, name: str, change: Callable[[Object], None]) -> Object | None:
        """Alter a copy and store it; None when there is no such object (any more)."""
        before = self.get(plural, namespace, name)
        if before is None:
            return None
        item = copied(before)
        change(item)
        return self.update(plural, item)

    def remove(self, plural: str, namespace: str, name: str) -> Object | None:
        shelf = self._shelves[plural]
        before = shelf.objects.get((namespace, name))
        if before is None:
            return None
        return self._put(shelf, "DELETED", before | {"metadata": dict(before["metadata"])}, before)

    def subscribe(self, plurals: Iterable[str], listener: Listener) -> Callable[[], None]:
        """Call `listener` after each change. It may only take note: writing belongs into a timer of its own."""
        shelves = [self._shelves[plural] for plural in plurals]
        for shelf in shelves:
            shelf.listeners.append(listener)

        def end() -> None:
            for shelf in shelves:
                if listener in shelf.listeners:
                    shelf.listeners.remove(listener)

        return end

    def changes_since(self, plural: str, version: int) -> list[Change]:
        shelf = self._shelves[plural]
        if version < shelf.forgotten:
            raise errors.gone(version, shelf.forgotten)
        later: list[Change] = []
        for change in reversed(shelf.log):
            if change.version <= version:
                break
            later.append(change)
        return later[::-1]

    def forget_log(self) -> None:
        """Compaction: whoever watches from before now must list anew."""
        for shelf in self._shelves.values():
            shelf.log.clear()
            shelf.forgotten = self.version
        self.compacted = self.version

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        """The random end of a generated name; no vowels, so that no words arise. Never the same twice.

        Among ten thousand pods two of five letters would be equal: a real server has its controllers try again.
        """
        while (made := "".join(self._chance.choices(SAFE_CHARACTERS, k=length))) in self._suffixes:
            pass
        self._suffixes.add(made)
        return made

    def _put(self, shelf: Shelf, kind_of_change: str, item: Object, before: Object | None) -> Object:
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        change = Change(self.version, shelf.kind.plural, kind_of_change, item, before)
        shelf.put(change)
        for listener in tuple(shelf.listeners):
            listener(change)
        return item

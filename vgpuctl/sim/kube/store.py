"""The store of all objects, like etcd: versions, a log of changes, indexes and subscriptions."""

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
#: The characters of generated names in Kubernetes: no vowels, so that no words appear by chance.
SAFE_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log. Its objects are shared and must not be altered."""

    version: int
    plural: str
    type: str
    object: Object
    before: Object | None


Listener = Callable[[Change], None]


class Collection:
    """All objects of one kind, with the log of their changes and their indexes."""

    def __init__(self, kind: Kind, log_length: int) -> None:
        self.kind = kind
        self.objects: dict[Key, Object] = {}
        self.log: deque[Change] = deque(maxlen=log_length)
        self.compacted = 0
        self.listeners: list[Listener] = []
        self._indexes: dict[str, dict[str, dict[Key, Object]]] = {field: {} for field in (*kind.indexed, OWNER)}
        self._order: list[Key] | None = None

    def order(self, namespace: str = "") -> list[Key]:
        """Return the sorted keys of one namespace or of all. They are sorted again only after an object
        came or went.
        """
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
            self.compacted = self.log[0].version
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
    """Objects by kind (its plural), namespace and name. Returned objects are shared and must not be altered."""

    def __init__(self, clock: Clock, rng: random.Random, log_length: int = 20_000) -> None:
        self.version = 0
        self.compacted = 0
        self._clock = clock
        self._rng = rng
        self._used_suffixes: set[str] = set()
        self._collections = {plural: Collection(kind, log_length) for plural, kind in STORED.items()}

    def get(self, plural: str, namespace: str, name: str) -> Object | None:
        return self._collections[plural].objects.get((namespace, name))

    def all(self, plural: str) -> list[Object]:
        """Return every object of a kind, unsorted."""
        return list(self._collections[plural].objects.values())

    def sorted(self, plural: str, namespace: str = "") -> list[Object]:
        collection = self._collections[plural]
        return [collection.objects[key] for key in collection.order(namespace)]

    def where(self, plural: str, field: str, value: str) -> list[Object]:
        """Return objects by an indexed field, or by the uid of an owner (`OWNER`), sorted by name."""
        return sorted(self.unordered(plural, field, value), key=key_of)

    def unordered(self, plural: str, field: str, value: str) -> list[Object]:
        """Return the same objects unsorted."""
        return self._collections[plural].where(field, value)

    def create(self, plural: str, item: Object) -> Object:
        """Store a new object without copying it. A creation time that is already set is kept, so objects can have a
        past.
        """
        collection, metadata = self._collections[plural], item["metadata"]
        if key_of(item) in collection.objects:
            raise errors.already_exists(collection.kind, metadata["name"])
        metadata.setdefault("uid", self.new_uid())
        metadata.setdefault("creationTimestamp", timestamp(self._clock.utc()))
        if collection.kind.generations:
            # Kubernetes: counts changes of the spec. Controllers say with it what they have seen.
            metadata["generation"] = 1
        return self._put(collection, "ADDED", item, None)

    def update(self, plural: str, item: Object) -> Object:
        """Replace an object. A stale resourceVersion is refused; an unchanged object keeps its version."""
        collection, metadata = self._collections[plural], item["metadata"]
        before = collection.objects.get(key_of(item))
        if before is None:
            raise errors.not_found(collection.kind, metadata["name"])
        present = before["metadata"]["resourceVersion"]
        # Measured: kube-apiserver 1.36 answers 409 to an older version. Without a version it asks nothing.
        if metadata.get("resourceVersion") not in (None, "", "0", present):
            raise errors.conflict(collection.kind, metadata["name"])
        metadata["resourceVersion"] = present
        # Measured: with kube-apiserver 1.36 a write that changes nothing makes no version.
        if item == before:
            return before
        if collection.kind.generations and item.get("spec") != before.get("spec"):
            metadata["generation"] = before["metadata"].get("generation", 0) + 1
        return self._put(collection, "MODIFIED", item, before)

    def edit(self, plural: str, namespace: str, name: str, change: Callable[[Object], None]) -> Object | None:
        """Change a copy of an object and store it; return None if the object does not exist."""
        before = self.get(plural, namespace, name)
        if before is None:
            return None
        item = copied(before)
        change(item)
        return self.update(plural, item)

    def remove(self, plural: str, namespace: str, name: str) -> Object | None:
        collection = self._collections[plural]
        before = collection.objects.get((namespace, name))
        if before is None:
            return None
        return self._put(collection, "DELETED", before | {"metadata": dict(before["metadata"])}, before)

    def subscribe(self, plurals: Iterable[str], listener: Listener) -> Callable[[], None]:
        """Call `listener` after each change. The listener must not write: a write belongs into a timer of its own."""
        collections = [self._collections[plural] for plural in plurals]
        for collection in collections:
            collection.listeners.append(listener)

        def end() -> None:
            for collection in collections:
                if listener in collection.listeners:
                    collection.listeners.remove(listener)

        return end

    def changes_since(self, plural: str, version: int) -> list[Change]:
        collection = self._collections[plural]
        # Kubernetes: such a watch ends with 410, and its client lists again.
        if version < collection.compacted:
            raise errors.gone(version, collection.compacted)
        later: list[Change] = []
        for change in reversed(collection.log):
            if change.version <= version:
                break
            later.append(change)
        return later[::-1]

    def compact(self) -> None:
        """Forget the log, as etcd's compaction does. A watch from an older version must list again."""
        for collection in self._collections.values():
            collection.log.clear()
            collection.compacted = self.version
        self.compacted = self.version

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        """Return the random end of a generated name, never the same twice.

        With five characters, two of ten thousand pods would often be equal. A real controller tries again then.
        """
        while (suffix := "".join(self._rng.choices(SAFE_CHARACTERS, k=length))) in self._used_suffixes:
            pass
        self._used_suffixes.add(suffix)
        return suffix

    def _put(self, collection: Collection, change_type: str, item: Object, before: Object | None) -> Object:
        # etcd: one revision for all objects.
        # From Kubernetes 1.35 on, clients may compare versions as numbers (KEP-5504).
        self.version += 1
        # Kubernetes: a deletion has a version of its own, so a watch can go on from it.
        item["metadata"]["resourceVersion"] = str(self.version)
        change = Change(self.version, collection.kind.plural, change_type, item, before)
        collection.put(change)
        for listener in tuple(collection.listeners):
            listener(change)
        return item

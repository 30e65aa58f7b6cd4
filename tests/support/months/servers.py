"""What Kubernetes keeps for all instances, in virtual time: the acting Lease, who leads, and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.months.stage import KilledError, Stage
from vgpuctl.kube.client import Client, NotFoundError, Object
from vgpuctl.kube.ledger import LedgerMap
from vgpuctl.model.errors import BusyError, PassingError, StoppedError
from vgpuctl.model.ledger import Changes, Ledger

#: Decision 0004: two thirds of the Lease's duration without a renewal is the most that is trusted.
DURATION_S, TRUSTED_S = 15.0, 10.0
#: How long a daemon leaves the Lease to a command that has asked.
ASKER_S = 30.0


@dataclass(eq=False)
class Party:
    """A process: an instance of the daemon, or a person's command. `silent_s`: since when it cannot renew anything."""

    number: int
    name: str
    gives_way: bool
    alive: bool = True
    silent_s: float | None = None

    @property
    def reaches(self) -> bool:
        return self.silent_s is None

    def silent_for(self, now_s: float) -> float:
        return 0.0 if self.silent_s is None else now_s - self.silent_s

    def must_reach(self) -> None:
        if not self.alive:
            raise KilledError
        if not self.reaches:
            raise PassingError("Kubernetes cannot be heard.")


class LeaseServer:
    """`asked_s`: when somebody first asked the present holder to give way. `waits`: how long each has waited."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.holder: Party | None = None
        self.asked, self.asked_s = "", 0.0
        self.waits: list[float] = []

    def take(self, party: Party, stop: Callable[[], bool]) -> None:
        began_s = self.stage.clock.now_s
        # Decision 0023: a daemon leaves a free Lease to the person that asks for it, for a while.
        while party.gives_way and self.asked and self.stage.clock.now_s - began_s < ASKER_S and not stop():
            party.must_reach()
            if self.holder is not None and self.holder is not party and self.holder.reaches:
                raise BusyError(f"{self.holder.name} is at work.")
            self.stage.rest(0.5)
        while not self._is_free_for(party):
            if stop():
                raise StoppedError("Stopped while waiting.")
            self.stage.rest(0.5)
        if self.asked:
            self.waits.append(self.stage.clock.now_s - self.asked_s)
        self.holder, self.asked = party, ""

    def _is_free_for(self, party: Party) -> bool:
        party.must_reach()
        holder, now_s = self.holder, self.stage.clock.now_s
        if holder is None or holder is party or holder.silent_for(now_s) >= DURATION_S:
            return True
        if not holder.gives_way or party.gives_way:
            # Decision 0023: only people ask.
            if holder.reaches:
                raise BusyError(f"{holder.name} is at work.")
        elif not self.asked:
            self.asked, self.asked_s = party.name, now_s
        return False


class PartyLease:
    """The acting Lease as one process has it."""

    def __init__(self, server: LeaseServer, party: Party) -> None:
        self._server, self._party, self._taken = server, party, False

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        self._server.take(self._party, stop)
        self._taken = True

    def held(self) -> bool:
        now_s = self._server.stage.clock.now_s
        return self._taken and self._server.holder is self._party and self._party.silent_for(now_s) < TRUSTED_S

    def lost(self) -> bool:
        return self._taken and self._party.reaches and self._server.holder is not self._party

    def asked(self) -> str:
        mine = self._party.reaches and self._server.holder is self._party
        return self._server.asked if mine else ""

    def release(self) -> None:
        if self._party.alive and self._party.reaches and self._server.holder is self._party:
            self._server.holder = None
        self._taken = False


class _ConfigMap(Client):
    """A Kubernetes that has this one object."""

    def __init__(self) -> None:
        self.data: dict[str, str] | None = None

    def get(self, path: str, *_: Any, **__: Any) -> Object:
        if self.data is None:
            raise NotFoundError("no ConfigMap")
        return {"data": dict(self.data)}

    def patch(self, path: str, body: Object) -> None:
        if self.data is None:
            raise NotFoundError("no ConfigMap")
        self.data = {key: text for key, text in {**self.data, **body["data"]}.items() if text is not None}

    def post(self, path: str, body: Object, *_: Any, **__: Any) -> Object:
        self.data = dict(body["data"])
        return {}


class LedgerServer:
    """The ConfigMap `vgpuctl`, through the product's own text. `rings`: called when it changes.

    `failing`: so many writes to come fail.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s, self._configmap = now_s, _ConfigMap()
        self._map = LedgerMap(self._configmap, "vgpuctl")
        self._told: list[tuple[float, Ledger]] = [(0.0, Ledger())]
        self.written_s: dict[str, float] = {}
        self.rings: list[Callable[[], None]] = []
        self.failing = self.failed = 0

    @property
    def true(self) -> Ledger:
        return self._told[-1][1]

    @property
    def texts(self) -> Mapping[str, str]:
        return self._configmap.data or {}

    def shown(self, lag_s: float) -> Ledger:
        """Return the ledger as a stream tells it that is so late."""
        seen = [ledger for when_s, ledger in self._told[-50:] if when_s <= self._now_s() - lag_s]
        return seen[-1] if seen else Ledger()

    def write(self, changed: Changes) -> None:
        before = dict(self.texts)
        self._map.write(changed)
        found = self._map.read_once()
        assert not found.unreadable, found.unreadable
        self.written_s |= {name: self._now_s() for name, text in self.texts.items() if before.get(name) != text}
        self._told.append((self._now_s(), found.known))
        for ring in tuple(self.rings):
            ring()


class Store:
    """The ledger as one process has it."""

    def __init__(self, server: LedgerServer, party: Party) -> None:
        self._server, self._party = server, party

    def read(self) -> Ledger:
        self._party.must_reach()
        return self._server.true

    def write(self, changed: Changes) -> None:
        self._party.must_reach()
        if self._server.failing and self._party.gives_way:
            self._server.failing -= 1
            self._server.failed += 1
            raise PassingError("The ledger cannot be written just now.")
        self._server.write(changed)

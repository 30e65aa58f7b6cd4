"""Sessions. Each owns its views, collectors and filters, which end with it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.vcenter.inventory.objects import InventoryObject
from vgpuctl.sim.vcenter.wire.vmomi import vim

#: vCenter's name for its cookie. govmomi 0.56 looks for it by this name.
COOKIE = "vmware_soap_session"
#: vSphere: a session ends after about 30 idle minutes, with its views, filters and collectors.
IDLE_S = 1800.0


@dataclass(frozen=True, slots=True)
class Account:
    """A user with a password. `role`: the number of its role on the whole inventory at first; None for none."""

    name: str
    password: str = field(repr=False)
    role: int | None = None


@dataclass(eq=False, slots=True)
class Session:
    """`answering` counts the calls in progress: a session that waits for an update is not idle (inferred)."""

    key: str
    account: Account
    began: datetime
    address: str
    agent: str
    last_active: datetime
    calls: int = 0
    answering: int = 0
    objects: dict[str, InventoryObject] = field(default_factory=dict)
    pages: dict[str, Any] = field(default_factory=dict)
    on_end: dict[str, Callable[[], None]] = field(default_factory=dict)
    _last_number: int = 0

    @property
    def user(self) -> str:
        return self.account.name

    def next_moid(self, prefix: str) -> str:
        self._last_number += 1
        # vcsim 0.56 names the objects of a session so.
        return f"session[{self.key}]{prefix}-{self._last_number}"

    def add(self, obj: InventoryObject, on_end: Callable[[], None] | None = None) -> Any:
        self.objects[obj.moid] = obj
        if on_end:
            self.on_end[obj.moid] = on_end
        return obj.ref

    def moids_of(self, kind: Any) -> list[str]:
        return [moid for moid, obj in self.objects.items() if isinstance(obj.ref, kind)]

    def drop(self, moid: str) -> None:
        self.objects.pop(moid, None)
        ending = self.on_end.pop(moid, None)
        if ending:
            ending()

    def as_wire(self) -> Any:
        return vim.UserSession(
            key=self.key,
            userName=self.user,
            fullName=self.user,
            loginTime=self.began,
            lastActiveTime=self.last_active,
            locale="en",
            messageLocale="en",
            extensionSession=False,
            ipAddress=self.address,
            userAgent=self.agent,
            callCount=self.calls,
        )


class Sessions:
    def __init__(self, accounts: Iterable[Account], clock: Clock) -> None:
        self.accounts = {account.name: account for account in accounts}
        self.idle_s = IDLE_S
        self._clock = clock
        self._by_key: dict[str, Session] = {}

    def account(self, user: str, password: str) -> Account | None:
        found = self.accounts.get(user)
        return found if found and hmac.compare_digest(password.encode(), found.password.encode()) else None

    def begin(self, account: Account, address: str, agent: str) -> Session:
        now = self._clock.utc()
        session = Session(secrets.token_hex(20), account, now, address, agent, last_active=now)
        self._by_key[session.key] = session
        self._clock.after(self.idle_s, partial(self._end_if_idle, session))
        return session

    def find(self, cookie: str | None) -> Session | None:
        return self._by_key.get((cookie or "").strip('"'))

    def touch(self, session: Session) -> None:
        session.last_active = self._clock.utc()

    @contextmanager
    def answering(self, session: Session) -> Iterator[None]:
        """Keep the session active until a long call ends."""
        session.answering += 1
        try:
            yield
        finally:
            session.answering -= 1
            self.touch(session)

    def all(self) -> list[Session]:
        return list(self._by_key.values())

    def end(self, session: Session) -> None:
        self._by_key.pop(session.key, None)
        # vSphere API: when a session ends, its filters are destroyed. Views end with it as well.
        for moid in list(session.objects):
            session.drop(moid)

    def end_all(self) -> None:
        """End all sessions, as a restart of vCenter does."""
        for session in self.all():
            self.end(session)

    def _end_if_idle(self, session: Session) -> None:
        """End the session if it is idle, else check again later. One timer for each session, so that calls
        need none.
        """
        if self._by_key.get(session.key) is not session:
            return
        idle_s = (self._clock.utc() - session.last_active).total_seconds()
        if not session.answering and idle_s >= self.idle_s:
            self.end(session)
        else:
            left_s = self.idle_s if session.answering else self.idle_s - idle_s
            self._clock.after(left_s, partial(self._end_if_idle, session))

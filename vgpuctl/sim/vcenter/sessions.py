"""Sessions. Each owns its views, collectors and filters, which end with it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from vgpuctl.sim.vcenter.things import MANAGERS, Thing
from vgpuctl.sim.vcenter.vmomi import vim

COOKIE = "vmware_soap_session"
SESSION_MANAGER = MANAGERS["SessionManager"]


@dataclass(eq=False, slots=True)
class Session:
    key: str
    user: str
    began: datetime
    address: str
    agent: str
    last_active: datetime
    calls: int = 0
    things: dict[str, Thing] = field(default_factory=dict)
    pages: dict[str, Any] = field(default_factory=dict)
    on_end: dict[str, Callable[[], None]] = field(default_factory=dict)
    _last_number: int = 0

    def fresh_moid(self, prefix: str) -> str:
        self._last_number += 1
        return f"session[{self.key}]{prefix}-{self._last_number}"

    def add(self, thing: Thing, on_end: Callable[[], None] | None = None) -> Any:
        self.things[thing.moid] = thing
        if on_end:
            self.on_end[thing.moid] = on_end
        return thing.ref

    def moids_of(self, kind: Any) -> list[str]:
        return [moid for moid, thing in self.things.items() if isinstance(thing.ref, kind)]

    def drop(self, moid: str) -> None:
        self.things.pop(moid, None)
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
    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password
        self._by_key: dict[str, Session] = {}

    def admits(self, user: str, password: str) -> bool:
        return user == self._user and hmac.compare_digest(password.encode(), self._password.encode())

    def begin(self, now: datetime, address: str, agent: str) -> Session:
        key = secrets.token_hex(20)
        self._by_key[key] = Session(key, self._user, now, address, agent, last_active=now)
        return self._by_key[key]

    def find(self, cookie: str | None) -> Session | None:
        return self._by_key.get((cookie or "").strip('"'))

    def all(self) -> list[Session]:
        return list(self._by_key.values())

    def end(self, session: Session) -> None:
        self._by_key.pop(session.key, None)
        for moid in list(session.things):
            session.drop(moid)

    def end_all(self) -> None:
        """As after a restart of vCenter, or half an hour without a call."""
        for session in self.all():
            self.end(session)


@SESSION_MANAGER("currentSession")
def _current(context: Any, _: Any) -> Any:
    return context.session.as_wire() if context.session else None


@SESSION_MANAGER("sessionList")
def _list(context: Any, _: Any) -> list[Any]:
    return [session.as_wire() for session in context.sessions.all()]

"""From a method's name to the function that answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.inventory.things import Thing
from vgpuctl.sim.vcenter.wire.sessions import Session

Handler = Callable[..., Any | Awaitable[Any]]
HANDLERS: dict[str, Handler] = {}
OPEN_TO_ALL = {"RetrieveServiceContent", "Login"}


@dataclass(slots=True)
class Call:
    """One request on its way: who asks, of what, and in which version of the API."""

    center: Center
    session: Session | None
    thing: Thing
    version: Any
    address: str
    agent: str

    @property
    def subject(self) -> Any:
        return self.thing.subject

    @property
    def member(self) -> Session:
        """The session of a call that cannot come without one."""
        assert self.session is not None
        return self.session


def answers(method: str) -> Callable[[Handler], Handler]:
    """The function takes the call, then the method's arguments in the order of its metadata."""

    def remember(handler: Handler) -> Handler:
        assert method not in HANDLERS, f"{method} is answered twice"
        HANDLERS[method] = handler
        return handler

    return remember

"""Finds the function that handles a method."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.inventory.objects import InventoryObject
from vgpuctl.sim.vcenter.wire.sessions import Session

Handler = Callable[..., Any | Awaitable[Any]]
HANDLERS: dict[str, Handler] = {}
#: Measured with vcsim 0.56: without a login these answer, and everything else is NotAuthenticated.
OPEN_TO_ALL = {"RetrieveServiceContent", "Login"}


@dataclass(slots=True)
class Call:
    """One call: its session, its target, and the version of the API."""

    center: Center
    session: Session | None
    target: InventoryObject
    version: Any
    address: str
    agent: str

    @property
    def subject(self) -> Any:
        return self.target.subject

    @property
    def required_session(self) -> Session:
        """The session of a call that is refused without one."""
        assert self.session is not None
        return self.session


def handles(method: str) -> Callable[[Handler], Handler]:
    """Register a handler. It takes the call, then the method's arguments in the order of the metadata."""

    def remember(handler: Handler) -> Handler:
        assert method not in HANDLERS, f"{method} is answered twice"
        HANDLERS[method] = handler
        return handler

    return remember

"""The SessionManager and the ServiceInstance: login, logout, and information about the service."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.objects import MANAGERS
from vgpuctl.sim.vcenter.inventory.permissions import SYSTEM_VIEW
from vgpuctl.sim.vcenter.wire import faults, service
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.vmomi import vim

SESSIONS = MANAGERS["SessionManager"]


@handles("RetrieveServiceContent")
def retrieve_service_content(call: Call) -> Any:
    return service.content()


@handles("CurrentTime")
def current_time(call: Call) -> Any:
    return call.center.estate.clock.utc()


@handles("Login")
def login(call: Call, user: str, password: str, locale: str | None) -> Any:
    sessions = call.center.sessions
    account = sessions.account(user, password)
    if account is None:
        # vsphere.local locks an account after 5 refused logins in 180 s (default policy). That is not simulated.
        raise vim.fault.InvalidLogin(msg="Cannot complete login due to an incorrect user name or password.")
    if not call.center.permissions.may_log_in(user):
        # Inferred: a user without a permission on any object has a password and no login.
        raise faults.no_permission(refs.ROOT, SYSTEM_VIEW)
    call.session = sessions.begin(account, call.address, call.agent)
    return call.session.as_wire()


@handles("Logout")
def logout(call: Call) -> None:
    call.center.sessions.end(call.required_session)


@handles("TerminateSession")
def terminate_session(call: Call, keys: list[str]) -> None:
    """End these sessions one after another, up to the first that cannot be ended."""
    # vcsim 0.56: the caller's own session and unknown ones are refused when it is their turn.
    for key in keys:
        if key == call.required_session.key:
            raise faults.invalid_argument("sessionId")
        session = call.center.sessions.find(key)
        if session is None:
            raise vim.fault.NotFound(msg="The object or item referred to could not be found.")
        call.center.sessions.end(session)


@handles("SessionIsActive")
def session_is_active(call: Call, key: str, user: str) -> bool:
    found = call.center.sessions.find(key)
    return found is not None and found.user == user


@SESSIONS("currentSession")
def _current(context: Any, _: Any) -> Any:
    return context.session.as_wire() if context.session else None


@SESSIONS("sessionList")
def _list(context: Any, _: Any) -> list[Any]:
    return [session.as_wire() for session in context.sessions.all()]

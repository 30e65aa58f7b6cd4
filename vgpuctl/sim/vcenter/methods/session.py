"""Logging in and out, and what can be asked of the service itself."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory.things import MANAGERS
from vgpuctl.sim.vcenter.wire import faults, service
from vgpuctl.sim.vcenter.wire.dispatch import Call, answers
from vgpuctl.sim.vcenter.wire.vmomi import vim

SESSIONS = MANAGERS["SessionManager"]


@answers("RetrieveServiceContent")
def retrieve_service_content(call: Call) -> Any:
    return service.content()


@answers("CurrentTime")
def current_time(call: Call) -> Any:
    return call.center.estate.clock.utc()


@answers("Login")
def login(call: Call, user: str, password: str, locale: str | None) -> Any:
    sessions = call.center.sessions
    history = call.center.history
    account = sessions.account(user, password)
    if account is None:
        history.note("BadUsernameSessionEvent", user, ipAddress=call.address)
        raise vim.fault.InvalidLogin(msg="Cannot complete login due to an incorrect user name or password.")
    call.session = sessions.begin(account, call.address, call.agent)
    history.note(
        "UserLoginSessionEvent",
        user,
        ipAddress=call.address,
        userAgent=call.agent,
        locale=locale or "en",
        sessionId=call.session.key,
    )
    return call.session.as_wire()


@answers("Logout")
def logout(call: Call) -> None:
    session = call.member
    call.center.sessions.end(session)
    call.center.history.note(
        "UserLogoutSessionEvent",
        session.user,
        ipAddress=session.address,
        userAgent=session.agent,
        callCount=session.calls,
        sessionId=session.key,
        loginTime=session.began,
    )


@answers("TerminateSession")
def terminate_session(call: Call, keys: list[str]) -> None:
    """All of them or none: one's own cannot be ended so, nor one that is not there."""
    if call.member.key in keys:
        raise faults.invalid_argument("sessionId")
    found = [call.center.sessions.find(key) for key in dict.fromkeys(keys)]
    if None in found:
        raise vim.fault.NotFound(msg="The object or item referred to could not be found.")
    for session in filter(None, found):
        call.center.sessions.end(session)
        call.center.history.note(
            "SessionTerminatedEvent", call.member.user, sessionId=session.key, terminatedUsername=session.user
        )


@answers("SessionIsActive")
def session_is_active(call: Call, key: str, user: str) -> bool:
    found = call.center.sessions.find(key)
    return found is not None and found.user == user


@SESSIONS("currentSession")
def _current(context: Any, _: Any) -> Any:
    return context.session.as_wire() if context.session else None


@SESSIONS("sessionList")
def _list(context: Any, _: Any) -> list[Any]:
    return [session.as_wire() for session in context.sessions.all()]

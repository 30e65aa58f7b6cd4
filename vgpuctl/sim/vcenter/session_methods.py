"""Logging in and out, and what can be asked of the service itself."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter import service
from vgpuctl.sim.vcenter.dispatch import Call, answers
from vgpuctl.sim.vcenter.vmomi import vim


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
    if not sessions.admits(user, password):
        history.note("BadUsernameSessionEvent", user, ipAddress=call.address)
        raise vim.fault.InvalidLogin(msg="Cannot complete login due to an incorrect user name or password.")
    call.session = sessions.begin(call.center.estate.clock.utc(), call.address, call.agent)
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


@answers("SessionIsActive")
def session_is_active(call: Call, key: str, user: str) -> bool:
    found = call.center.sessions.find(key)
    return found is not None and found.user == user

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
    if not sessions.admits(user, password):
        raise vim.fault.InvalidLogin(msg="Cannot complete login due to an incorrect user name or password.")
    call.session = sessions.begin(call.center.estate.clock.utc(), call.address, call.agent)
    return call.session.as_wire()


@answers("Logout")
def logout(call: Call) -> None:
    call.center.sessions.end(call.member)


@answers("SessionIsActive")
def session_is_active(call: Call, key: str, user: str) -> bool:
    found = call.center.sessions.find(key)
    return found is not None and found.user == user

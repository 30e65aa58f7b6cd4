"""Turns a request for a fault into a rule. Every name is checked; an error suggests the nearest known name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vgpuctl.sim.faults import ANY, KUBERNETES, VCENTER, ActiveFault, Effect, How, Rule
from vgpuctl.sim.kube.api.kinds import ALL
from vgpuctl.sim.vcenter.methods import handlers
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.words import nearest

HANDLERS = handlers()
_VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_NUMBERS = ("nth", "every", "times", "seed")


class InvalidRequest(ValueError):  # noqa: N818
    """A request that the control cannot carry out. Its text is shown to a person."""


def rule_of(request: Mapping[str, Any]) -> Rule:
    """Return the rule for a request with target, how, what, seconds, on, and which calls it selects."""
    server, method = _parse_target(str(request.get("target", "")))
    effect = _parse_effect(server, method, request)
    selection = {name: _number(request, name) for name in _NUMBERS if request.get(name) is not None}
    if sum(request.get(name) is not None for name in ("nth", "every", "chance")) > 1:
        raise InvalidRequest("only one of nth, every and chance may be given")
    chance = request.get("chance")
    if chance is not None and not 0 < float(chance) <= 1:
        raise InvalidRequest("chance must be above 0 and at most 1")
    return Rule(
        server=server, method=method, on=str(request.get("on") or ANY), effect=effect, chance=chance, **selection
    )


def as_document(fault: ActiveFault) -> dict[str, Any]:
    """Return an active fault as the JSON that the control sends."""
    rule = fault.rule
    selection = {name: getattr(rule, name) for name in ("nth", "every", "chance", "times")}
    return {
        "id": fault.id,
        "server": rule.server,
        "method": rule.method,
        "on": rule.on,
        "how": rule.effect.how.value,
        "what": rule.effect.what,
        "seconds": rule.effect.seconds,
        **{name: value for name, value in selection.items() if value is not None},
        "concerned": fault.concerned,
        "met": fault.met,
    }


def _parse_target(text: str) -> tuple[str, str]:
    """Return server and method.

    `vcenter` and `kubernetes` mean all calls of a server. Else the target is a method of vCenter, or a verb and a
    resource.
    """
    if text in (VCENTER, KUBERNETES):
        return text, ANY
    methods = (*HANDLERS, *_kubernetes_calls(), VCENTER, KUBERNETES)
    if text not in methods:
        raise InvalidRequest(f"no call is named {text!r}{nearest(text, methods)}")
    return (VCENTER, text) if text in HANDLERS else (KUBERNETES, text)


def _kubernetes_calls() -> Iterable[str]:
    for kind in ALL:
        for resource in (kind.plural, *(f"{kind.plural}/{sub}" for sub in kind.subresources)):
            yield from (f"{verb} {resource}" for verb in _VERBS)


def _parse_effect(server: str, method: str, request: Mapping[str, Any]) -> Effect:
    try:
        how = How(str(request.get("how")))
    except ValueError:
        raise InvalidRequest(f"no effect is called {request.get('how')!r}") from None
    what, seconds = str(request.get("what") or ""), float(request.get("seconds") or 0)
    # Kubernetes has neither tasks nor sessions.
    if how in (How.TASK_FAILS, How.TASK_HANGS, How.END_SESSIONS) and server != VCENTER:
        raise InvalidRequest(f"{how.value} works only on vCenter's calls")
    if how in (How.TASK_FAILS, How.TASK_HANGS) and not method.endswith("_Task"):
        raise InvalidRequest(f"{how.value} works only on methods that start a task; {method} starts none")
    if how in (How.FAIL, How.TASK_FAILS):
        _check_failure(server, what)
    # Kubernetes: Retry-After. SOAP has no such word.
    if how is How.FAIL and seconds and server != KUBERNETES:
        raise InvalidRequest("only Kubernetes says how long to wait before the next try")
    if how.needs_time and seconds <= 0:
        raise InvalidRequest(f"{how.value} needs a time, such as 10s")
    return Effect(how=how, what=what, seconds=seconds)


def _check_failure(server: str, what: str) -> None:
    if server == KUBERNETES:
        if not (what.isdigit() and 400 <= int(what) <= 599):
            raise InvalidRequest(f"a status of Kubernetes must be from 400 to 599, not {what!r}")
    elif not faults.is_fault(what):
        raise InvalidRequest(f"vCenter has no fault {what!r}{nearest(what, faults.COMMON)}")


def _number(request: Mapping[str, Any], name: str) -> int:
    number = int(request[name])
    if number < (least := 0 if name == "seed" else 1):
        raise InvalidRequest(f"{name} must be at least {least}")
    return number

"""A fault as it is asked for, as a rule: every name in it is checked, and the nearest one is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vgpuctl.sim.faults import ANY, KUBERNETES, VCENTER, Effect, How, Rule, StandingFault
from vgpuctl.sim.kube.api.kinds import ALL
from vgpuctl.sim.vcenter.methods import handlers
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.words import nearest

HANDLERS = handlers()
_VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_NUMBERS = ("nth", "every", "times", "seed")


class NotUnderstood(ValueError):  # noqa: N818
    """Something a person should read."""


def rule_of(asked: Mapping[str, Any]) -> Rule:
    """`asked`: target, how, what, seconds, on, and which calls."""
    server, method = _target(str(asked.get("target", "")))
    effect = _effect(server, method, asked)
    which = {name: _number(asked, name) for name in _NUMBERS if asked.get(name) is not None}
    if sum(asked.get(name) is not None for name in ("nth", "every", "chance")) > 1:
        raise NotUnderstood("of nth, every and chance only one can be given")
    chance = asked.get("chance")
    if chance is not None and not 0 < float(chance) <= 1:
        raise NotUnderstood("a chance lies above 0 and is at most 1")
    return Rule(server=server, method=method, on=str(asked.get("on") or ANY), effect=effect, chance=chance, **which)


def document(standing: StandingFault) -> dict[str, Any]:
    """A rule in force, for people and programs."""
    rule = standing.rule
    which = {name: getattr(rule, name) for name in ("nth", "every", "chance", "times")}
    return {
        "id": standing.id,
        "server": rule.server,
        "method": rule.method,
        "on": rule.on,
        "how": rule.effect.how.value,
        "what": rule.effect.what,
        "seconds": rule.effect.seconds,
        **{name: value for name, value in which.items() if value is not None},
        "concerned": standing.concerned,
        "met": standing.met,
    }


def _target(text: str) -> tuple[str, str]:
    """`vcenter` and `kubernetes` are all calls of a server; else it is a method, or a verb and a resource."""
    if text in (VCENTER, KUBERNETES):
        return text, ANY
    methods = (*HANDLERS, *_kubernetes_calls(), VCENTER, KUBERNETES)
    if text not in methods:
        raise NotUnderstood(f"no call is named {text!r}{nearest(text, methods)}")
    return (VCENTER, text) if text in HANDLERS else (KUBERNETES, text)


def _kubernetes_calls() -> Iterable[str]:
    for kind in ALL:
        for resource in (kind.plural, *(f"{kind.plural}/{sub}" for sub in kind.subresources)):
            yield from (f"{verb} {resource}" for verb in _VERBS)


def _effect(server: str, method: str, asked: Mapping[str, Any]) -> Effect:
    try:
        how = How(str(asked.get("how")))
    except ValueError:
        raise NotUnderstood(f"a call cannot be made to {asked.get('how')!r}") from None
    what, seconds = str(asked.get("what") or ""), float(asked.get("seconds") or 0)
    if how in (How.TASK_FAILS, How.TASK_HANGS, How.END_SESSIONS) and server != VCENTER:
        raise NotUnderstood(f"{how.value} is for vCenter's calls")
    if how in (How.TASK_FAILS, How.TASK_HANGS) and not method.endswith("_Task"):
        raise NotUnderstood(f"{how.value} is for methods that start a task, and {method} starts none")
    if how in (How.FAIL, How.TASK_FAILS):
        _check_failure(server, what)
    if how is How.FAIL and seconds and server != KUBERNETES:
        raise NotUnderstood("only Kubernetes says for how long to wait")
    if how in (How.HANG, How.DOWN) and seconds <= 0:
        raise NotUnderstood(f"{how.value} needs a time, such as 10s")
    return Effect(how=how, what=what, seconds=seconds)


def _check_failure(server: str, what: str) -> None:
    if server == KUBERNETES:
        if not (what.isdigit() and 400 <= int(what) <= 599):
            raise NotUnderstood(f"Kubernetes fails with a status from 400 to 599, not {what!r}")
    elif not faults.is_fault(what):
        raise NotUnderstood(f"vCenter has no fault {what!r}{nearest(what, faults.KNOWN)}")


def _number(asked: Mapping[str, Any], name: str) -> int:
    number = int(asked[name])
    if number < (0 if name == "seed" else 1):
        raise NotUnderstood(f"{name} is at least 1")
    return number

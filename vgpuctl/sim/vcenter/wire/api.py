"""vCenter's API as a function: a method call in, its result out. HTTP and simulations in one process both call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.faults import VCENTER, Effect, How
from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.methods import handlers
from vgpuctl.sim.vcenter.physics.refusals import Refusal
from vgpuctl.sim.vcenter.physics.tasks import HANGS, Outcome
from vgpuctl.sim.vcenter.wire import faults, rights
from vgpuctl.sim.vcenter.wire.dispatch import OPEN_TO_ALL, Call
from vgpuctl.sim.vcenter.wire.requests import FETCH, Request
from vgpuctl.sim.vcenter.wire.serialiser import Xml, response, serialise
from vgpuctl.sim.vcenter.wire.sessions import Session
from vgpuctl.sim.vcenter.wire.vmomi import support, vim

HANDLERS = handlers()
Count = Callable[..., Effect | None]
"""Takes the server, the method and the object's names; returns what must go wrong with the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller, as far as the transport knows it. `cookie`: the session's key; None before the login."""

    cookie: str | None
    version: Any
    address: str = ""
    agent: str = ""


@dataclass(slots=True)
class Answer:
    """A parsed call and its method's result, which the transport may have to await."""

    request: Request
    call: Call
    result: Any

    def soap(self) -> bytes:
        return response(self.request.method, self._content())

    def _content(self) -> str:
        result, info = self.result, self.request.info
        if result is None or isinstance(result, Xml):
            return result or ""
        return serialise("returnval", result, _kind_of(result) if info is FETCH else info.result, self.call.version)


class Api:
    """Each call is first counted, then answered. Effects in between, such as a cut connection, are the transport's
    task.
    """

    def __init__(self, center: Center, count: Count) -> None:
        self._center = center
        self._count = count

    @property
    def clock(self) -> Clock:
        return self._center.estate.clock

    def effect_on(self, request: Request) -> Effect | None:
        """Count the call and return what must go wrong with it. A `fail` effect is raised as its fault at once."""
        effect = self._count(VCENTER, request.method, *self._names(request.this))
        # Decision 0006: each effect is carried out once, where a request is answered.
        if effect and effect.how is How.FAIL:
            raise faults.by_name(effect.what)
        if effect and effect.how is How.END_SESSIONS:
            self._center.sessions.end_all()
        return effect

    def answer(self, request: Request, caller: Caller, effect: Effect | None) -> Answer:
        """Carry the call out; raise a fault if it is refused. `effect`: how the task that it starts is made to end."""
        call = self._call(request, caller)
        try:
            with self._center.estate.work.acting_as(call.session.user if call.session else ""):
                result = HANDLERS[request.method](call, *request.arguments)
        except Refusal as refusal:
            raise faults.fault_of(refusal) from None
        if isinstance(result, vim.Task) and (outcome := _outcome_of(effect)):
            self._center.estate.work.set_outcome(result._moId, outcome)
        return Answer(request, call, result)

    def _names(self, ref: Any) -> tuple[str, ...]:
        """Return the names by which a fault can select the object."""
        obj = self._center.find(ref, None)
        name = self._center.read(obj, "name", None) if obj and isinstance(ref, vim.ManagedEntity) else ""
        return (ref._moId, name) if name else (ref._moId,)

    def _call(self, request: Request, caller: Caller) -> Call:
        # Measured with vcsim 0.56: without a login everything but the way in is NotAuthenticated.
        session = self._center.sessions.find(caller.cookie)
        if not session and request.method not in OPEN_TO_ALL:
            raise faults.not_authenticated(request.this)
        # Some servers answer ManagedObjectNotFound for a view of an ended session; to clients both mean a new login.
        obj = self._center.find(request.this, session)
        if not obj:
            raise faults.not_found(request.this)
        rights.check(self._center, session, request)
        # Decision 0005: what is not simulated is refused with the protocol's own fault.
        if request.method not in HANDLERS or not isinstance(obj.ref, request.info.type):
            raise faults.not_supported(request.method)
        self._note_activity(session)
        return Call(self._center, session, obj, caller.version, caller.address, caller.agent)

    def _note_activity(self, session: Session | None) -> None:
        if session:
            session.calls += 1
            self._center.sessions.touch(session)


def _kind_of(result: Any) -> Any:
    """Return the declared type of a property. A data object may be a subtype, so its type is written with it."""
    # Measured with pyVmomi: the result of Fetch has its static type.
    return object if isinstance(result, support.DataObject) else type(result)


def _outcome_of(effect: Effect | None) -> Outcome:
    match effect:
        case Effect(how=How.TASK_FAILS, what=kind):
            return faults.refusal_by_name(kind)
        case Effect(how=How.TASK_HANGS):
            return HANGS
    return None

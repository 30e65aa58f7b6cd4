"""The product's own clients of both servers, put to one simulated world in virtual time: no socket is between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable
from io import BytesIO
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import MERGE_PATCH, Client, Object
from vgpuctl.sim.faults import KUBERNETES, Effect, How
from vgpuctl.sim.kube.api.api import Api as KubernetesApi
from vgpuctl.sim.kube.api.errors import ApiError, injected
from vgpuctl.sim.kube.api.request import JSON, Reply, Request, target_of
from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.wire.api import Api as VcenterApi
from vgpuctl.sim.vcenter.wire.api import Caller, Count
from vgpuctl.sim.vcenter.wire.metadata import NEWEST
from vgpuctl.sim.vcenter.wire.requests import Request as Called
from vgpuctl.sim.vcenter.wire.requests import method_info, parse
from vgpuctl.sim.vcenter.wire.serialiser import fault_response
from vgpuctl.sim.vcenter.wire.vmomi import adapter, vim, vmodl
from vgpuctl.sim.world import World
from vgpuctl.vsphere.session import Session, VcenterSettings

SERVER = "sim"
Reached = TypeVar("Reached")


@dataclass(frozen=True, slots=True)
class Response:
    """What the product's client of Kubernetes reads of an HTTP response."""

    status: int
    body: Object
    headers: Mapping[str, str] = field(default_factory=dict)

    def read(self) -> bytes:
        return json.dumps(self.body).encode()

    def close(self) -> None:
        """Nothing is open."""

    release_conn = close


#: Sees each request that arrives, and carries it out.
AtKubernetes = Callable[[Request, Callable[[], Response]], Response]
#: Sees each call that arrives, before it is carried out.
AtVcenter = Callable[[Called], None]


class Later(Exception):  # noqa: N818
    """The answer comes after a while."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


def _with_effect(effect: Effect | None, do: Callable[[], Reached]) -> Reached:
    """The effects that need no word of the protocol, as `sim.disturbance` carries them out on HTTP."""
    match effect.how if effect else None:
        case How.CUT | How.DOWN:
            raise ConnectionResetError("the connection was cut")
        case How.HANG:
            assert effect
            raise Later(effect.seconds)
        case How.LOSE_REPLY:
            with suppress(vmodl.MethodFault):  # a refusal is a reply, too
                do()
            raise ConnectionResetError("the reply was lost")
    return do()


def kubectl(api: KubernetesApi, method: str, path: str, body: Object | None = None) -> Object:
    """What a person does, with no fault in the way."""
    kind = MERGE_PATCH if method == "PATCH" else JSON
    reply = api.answer(Request(method=method, path=path, body=json.dumps(body or {}).encode(), content_type=kind))
    assert isinstance(reply, Reply)
    return reply.body


class Kubernetes(Client):
    """Only its connections are not real."""

    def __init__(self, world: World, count: Count, witness: AtKubernetes) -> None:
        self.settings = KubernetesSettings()
        self.server, self.unverified, self.called = SERVER, False, f"Kubernetes at {SERVER}"
        self._pool, self._before_paths = _Connections(world, count, witness), ""

    def _authorization(self) -> dict[str, str]:
        """Nothing but HTTP asks for a token."""
        return {}


class _Connections:
    """As urllib3's pool of one server."""

    def __init__(self, world: World, count: Count, witness: AtKubernetes) -> None:
        self._api, self._count, self._witness = world.api, count, witness

    def urlopen(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None = None, **more: object
    ) -> Response:
        path, _, query = url.partition("?")
        request = Request(
            method=method,
            path=path,
            query=dict(parse_qsl(query)),
            body=body or b"",
            content_type=headers.get("Content-Type", ""),
            accept=headers["Accept"],
            agent=headers["User-Agent"],
        )
        target = target_of(path)
        effect = self._count(KUBERNETES, f"{method} {target.resource}", *target.names)
        if effect and effect.how is How.FAIL:
            return _refused(injected(int(effect.what), effect.seconds))
        return _with_effect(effect, lambda: self._witness(request, partial(self._answer, request)))

    def _answer(self, request: Request) -> Response:
        try:
            reply = self._api.answer(request)
        except ApiError as error:
            return _refused(error)
        assert isinstance(reply, Reply)
        return Response(reply.code, reply.body)


def _refused(error: ApiError) -> Response:
    after = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else {}
    return Response(error.code, error.status(), after)


class Vcenter(Session):
    """Logged in already; its managed objects are pyVmomi's own."""

    def __init__(self, world: World, count: Count, witness: AtVcenter) -> None:
        logins = world.logins
        super().__init__(VcenterSettings(host=SERVER, user=logins.user, password=logins.password))
        self._stub = _Stub(world, count, witness, (logins.user, logins.password))


def vcenter_as(world: World, user: str, password: str) -> Any:
    """Return the service content of a session of this user, as pyVmomi's objects."""
    stub = _Stub(world, world.calls.count, lambda _: None, (user, password))
    return vim.ServiceInstance("ServiceInstance", stub).RetrieveContent()


class _Stub(adapter.SoapStubAdapter):  # type: ignore[misc]
    """Calls and answers are written and read as XML; only the connection is not real."""

    def __init__(self, world: World, count: Count, witness: AtVcenter, login: tuple[str, str]) -> None:
        super().__init__(SERVER, version=NEWEST)
        self._api, self._witness, self._login = VcenterApi(world.center, count), witness, login
        self._log_in()

    def InvokeMethod(self, mo: Any, info: Any, args: Sequence[Any], _: Any = None) -> Any:
        call = parse(self.SerializeRequest(mo, info, args))
        try:
            effect = self._api.effect_on(call)
            reply = _with_effect(effect, partial(self._answer, call, effect))
        except vmodl.MethodFault as fault:
            reply = fault_response(fault, NEWEST)
        found = adapter.SoapResponseDeserializer(self).Deserialize(BytesIO(reply), info.result)
        if isinstance(found, Exception):
            raise found
        return found

    def _answer(self, call: Called, effect: Effect | None) -> bytes:
        self._witness(call)
        try:
            answer = self._api.answer(call, Caller(cookie=self._session, version=NEWEST), effect)
        except vim.fault.NotAuthenticated:
            self._log_in()  # as the product's stream does as soon as it hears of it
            raise
        assert not isawaitable(answer.result), "what waits has no place in virtual time"
        return answer.soap()

    def _log_in(self) -> None:
        given = (*self._login, None)
        login = Called("Login", method_info("Login"), refs.SESSIONS, given)
        session = self._api.answer(login, Caller(cookie=None, version=NEWEST), None).call.required_session
        session.answering += 1  # the product's stream waits for updates all the while
        self._session = session.key

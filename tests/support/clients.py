"""A client of the simulated Kubernetes without HTTP, and those effects of faults that both servers share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from vgpuctl.kube.client import MERGE_PATCH, Object, refusal
from vgpuctl.model.errors import PassingError, VgpuctlError
from vgpuctl.sim.faults import KUBERNETES, Effect, How
from vgpuctl.sim.kube.api import Api
from vgpuctl.sim.kube.errors import ApiError, injected
from vgpuctl.sim.kube.request import Reply, Request, target_of
from vgpuctl.sim.world import World

Meet = Callable[..., Effect | None]
Witness = Callable[[Request, Callable[[], Object]], Object]
Reached = TypeVar("Reached")


class Later(Exception):  # noqa: N818
    """The answer comes after a while."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


def with_effect(effect: Effect | None, do: Callable[[], Reached]) -> Reached:
    match effect.how if effect else None:
        case How.CUT | How.DOWN:
            raise PassingError("the connection was cut")
        case How.HANG:
            assert effect
            raise Later(effect.seconds)
        case How.LOSE_REPLY:
            do()
            raise PassingError("the reply was lost")
    return do()


class Kubernetes:
    """What the product's actions need of a client. `witness` sees each request that arrives."""

    def __init__(self, world: World, meet: Meet, witness: Witness = lambda _, answer: answer()) -> None:
        self._api, self._meet, self._witness = Api(world.kubernetes), meet, witness

    def call(self, method: str, path: str, body: Object) -> Object:
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        return self._ask(Request(method=method, path=path, body=json.dumps(body).encode(), content_type=kind))

    def get(self, path: str, **query: str) -> Object:
        return self._ask(Request(method="GET", path=path, query=query))

    def metadata(self, path: str, **query: str) -> list[Object]:
        return [item["metadata"] for item in self.get(path, **query)["items"]]

    def post(self, path: str, body: Object) -> Object:
        return self.call("POST", path, body)

    def patch(self, path: str, body: Object) -> Object:
        return self.call("PATCH", path, body)

    def delete(self, path: str, body: Object | None = None) -> Object:
        return self.call("DELETE", path, body or {})

    def _ask(self, request: Request) -> Object:
        target = target_of(request.path)
        effect = self._meet(KUBERNETES, f"{request.method} {target.called}", target.name)
        if effect and effect.how is How.FAIL:
            raise _refused(injected(int(effect.what), effect.seconds))
        return with_effect(effect, lambda: self._witness(request, lambda: self._answer(request)))

    def _answer(self, request: Request) -> Object:
        try:
            reply = self._api.answer(request)
        except ApiError as error:
            raise _refused(error) from None
        assert isinstance(reply, Reply)
        return reply.body


def _refused(error: ApiError) -> VgpuctlError:
    after = str(error.retry_after_s) if error.retry_after_s else None
    return refusal(error.code, json.dumps(error.status()).encode(), "sim", after=after)

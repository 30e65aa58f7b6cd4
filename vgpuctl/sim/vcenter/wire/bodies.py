"""A request's body, as far as anybody should send one."""

from __future__ import annotations

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from vgpuctl.sim.http_body import read_at_most
from vgpuctl.sim.vcenter.wire.requests import BadRequest

MOST_BYTES = 4 << 20
"""A filter over each of ten thousand VMs by name needs one."""


class TooLarge(BadRequest):
    """More than we read; the rest stays where it is."""


async def read(http: Request) -> bytes:
    announced = http.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > MOST_BYTES:
        raise _too_large()
    try:
        body = await read_at_most(http, MOST_BYTES)
    except ClientDisconnect:
        raise BadRequest("it ends too early") from None
    if body is None:
        raise _too_large()
    return body


def with_an_end(answer: Response, bad: BadRequest) -> Response:
    """Behind what is too large the connection ends: the rest of it is not worth reading."""
    if isinstance(bad, TooLarge):
        answer.headers["connection"] = "close"
    return answer


def _too_large() -> TooLarge:
    return TooLarge(f"it is larger than {MOST_BYTES} bytes")

"""Reads a request's body, up to a limit."""

from __future__ import annotations

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from vgpuctl.sim.http_body import read_at_most
from vgpuctl.sim.vcenter.wire.requests import BadRequest

MAX_BYTES = 4 << 20
"""A filter that names each of ten thousand VMs must fit."""


class TooLarge(BadRequest):
    """A body that is longer than the limit. The rest of it stays unread."""


async def read(http: Request) -> bytes:
    announced = http.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > MAX_BYTES:
        raise _too_large()
    try:
        # Measured: govc sends requests in chunks, without a Content-Length.
        body = await read_at_most(http, MAX_BYTES)
    except ClientDisconnect:
        raise BadRequest("it ends too early") from None
    if body is None:
        raise _too_large()
    return body


def close_if_too_large(answer: Response, bad: BadRequest) -> Response:
    """End the connection after a body that is too large, because the rest of it stays unread."""
    if isinstance(bad, TooLarge):
        answer.headers["connection"] = "close"
    return answer


def _too_large() -> TooLarge:
    return TooLarge(f"it is larger than {MAX_BYTES} bytes")

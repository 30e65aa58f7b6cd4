"""A request's body, as far as anybody should send one."""

from __future__ import annotations

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from vgpuctl.sim.vcenter.wire.requests import BadRequest

MOST_BYTES = 4 << 20
"""A filter over each of ten thousand VMs by name needs one."""


class TooLarge(BadRequest):
    """More than we read; the rest stays where it is."""


async def read(http: Request) -> bytes:
    announced = http.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > MOST_BYTES:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    try:
        async for part in http.stream():
            size += len(part)
            if size > MOST_BYTES:
                raise _too_large()
            parts.append(part)
    except ClientDisconnect:
        raise BadRequest("it ends too early") from None
    return b"".join(parts)


def with_an_end(answer: Response, bad: BadRequest) -> Response:
    """Behind what is too large the connection ends: the rest of it is not worth reading."""
    if isinstance(bad, TooLarge):
        answer.headers["connection"] = "close"
    return answer


def _too_large() -> TooLarge:
    return TooLarge(f"it is larger than {MOST_BYTES} bytes")

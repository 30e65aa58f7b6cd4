"""A request's body, read no further than it may be long."""

from __future__ import annotations

from starlette.requests import Request


async def read_at_most(http: Request, limit: int) -> bytes | None:
    """Return the body; None as soon as it is longer than `limit` bytes, with the rest unread."""
    parts: list[bytes] = []
    size = 0
    async for part in http.stream():
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
    return b"".join(parts)

"""Sends requests to the control of running simulators, which it finds by their folder."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from vgpuctl.sim.errors import SimError

ANSWER_WITHIN_S = 10.0
ADVANCE_WITHIN_S = 600.0


def call_control(
    folder: Path, method: str, path: str, body: dict[str, Any] | None = None, within_s: float = ANSWER_WITHIN_S
) -> dict[str, Any]:
    """Send one request and return the reply.

    Advancing the clock may take minutes; every other request is quick.
    """
    try:
        control = json.loads((folder / "control.json").read_text())
        request = urllib.request.Request(  # noqa: S310  # the URL is our own file's
            f"{control['url']}/{path}",
            method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"Bearer {control['token']}"},
        )
        context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        # No proxy: it could not reach loopback of this machine, and would see every request.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(request, timeout=within_s) as answer:
            reply: dict[str, Any] = json.load(answer)
            return reply
    except urllib.error.HTTPError as error:
        raise SimError(_refusal(error)) from None
    except (OSError, ValueError, KeyError) as error:
        raise SimError(
            f"No simulators answer in {folder}. Start them with: vgpuctl sim up --dir {folder} --detach"
        ) from error


def _refusal(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError):
        return f"the simulators answered with status {error.code}"

"""What the API server makes of a Secret, and what it refuses."""

from __future__ import annotations

import base64
import binascii

from vgpuctl.sim.kube.objects import Object

OPAQUE = "Opaque"


def fill_in(item: Object) -> None:
    """Add the type, and move texts to the encoded data: `stringData` is never read back."""
    item.setdefault("type", OPAQUE)
    if texts := item.pop("stringData", None):
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        item["data"] = (item.get("data") or {}) | encoded


def is_encoded(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    return True

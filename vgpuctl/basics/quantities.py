"""Kubernetes' quantities: `100m`, `1.5`, `2Gi`, `1k`, `1e3`, as the API server takes them.

https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/: amounts are capped at 2^63-1. Parts
finer than the smallest unit are rounded up, away from zero.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from vgpuctl.basics.bounded import UnreadableError

#: LONGEST: more digits than the server writes for any amount. BEYOND: with larger exponents an amount is either capped
#: or the least.
LONGEST = 64
BEYOND = 100
MOST = 2**63 - 1

_WRITTEN = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?:[eE](?P<exponent>[+-]?[0-9]{1,10})|(?P<suffix>[A-Za-z]{0,2}))"
)
_TENS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TWOS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def thousandths(quantity: Any, of: str) -> int:
    """Return the amount times 1000."""
    written = quantity if isinstance(quantity, str) else str(quantity) if isinstance(quantity, int | float) else ""
    found = _thousandths(written) if len(written) <= LONGEST else None
    if found is None:
        raise UnreadableError(f"{of} is no quantity such as 2, 500m or 16Gi")
    return found


def count(quantity: Any, of: str) -> int:
    """Return a count of whole pieces, as for GPUs."""
    pieces, rest = divmod(thousandths(quantity, of), 1000)
    if rest or pieces < 0:
        raise UnreadableError(f"{of} is no whole number of pieces")
    return pieces


@lru_cache(4096)
def _thousandths(written: str) -> int | None:
    """Return the amount times 1000; None if the text is no quantity."""
    match = _WRITTEN.fullmatch(written)
    scale = _scale(match) if match else None
    if match is None or scale is None or not (match["whole"] or match["part"]):
        return None
    tens, twos = scale
    part = match["part"] or ""
    tens = max(-BEYOND, min(BEYOND, tens)) - len(part) + 3
    digits = int(match["whole"] + part) << twos
    power: int = 10 ** abs(tens)
    amount = min(digits * power if tens >= 0 else -(-digits // power), MOST * 1000)
    return -amount if match["sign"] == "-" else amount


def _scale(match: re.Match[str]) -> tuple[int, int] | None:
    """Return the powers of ten and of two to multiply by."""
    suffix = match["suffix"] or ""
    if match["exponent"]:
        return int(match["exponent"]), 0
    if suffix in _TENS:
        return _TENS[suffix], 0
    return (0, _TWOS[suffix]) if suffix in _TWOS else None

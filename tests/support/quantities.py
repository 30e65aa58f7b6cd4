"""Quantities as clients send them, and as kube-apiserver 1.36 stores them. The contract holds both against it."""

from __future__ import annotations

#: The number of milli-units is never broken: the server rounds up. Small and fractional amounts lose a binary suffix.
QUANTITIES: dict[object, str] = {
    0.5: "500m",
    1000.0: "1k",
    3: "3",
    ".5": "500m",
    "5.": "5.",
    "1e3": "1e3",
    "1E3": "1E3",
    "100e1": "1e3",
    "1e-20": "1e-3",
    "100u": "1m",
    "1n": "1m",
    "2000m": "2",
    "1.5Gi": "1536Mi",
    "1024Mi": "1Gi",
    "0.1Ki": "102400m",
    "1P": "1P",
    "1E": "1E",
    "1Pi": "1Pi",
    "9Ei": "9223372036854775807",
    "+1": "+1",
    "1 ": "1",
    "000": "0",
}
NO_QUANTITIES: tuple[object, ...] = ("", "1e", "1K", "1ki", "0x1", "1e3Ki", "1_0", "some", True, [], {})

"""Where the same command may say another thing here and there: which lines, and why. Data, no rules of thumb."""

from __future__ import annotations

import re

ESTATE = "vcsim's VMs are of another size, and its datacenter has another name"
LABELS = "a device's key, label and summary are vCenter's own choice"
TIMING = "how often a client says that it waits is chance"

#: For commands that begin so: lines of this pattern are not compared, for this reason.
DIFFERENCES: tuple[tuple[str, str, str], ...] = (
    ("kubectl rollout status", r"^Waiting for ", TIMING),
    ("govc vm.info", r"^(CPU|Guest name|Memory): ", ESTATE),
    (
        "govc vm.info",
        r"^Boot time: ",
        "vcsim forgets it at a suspend; vSphere clears it at a power-off",
    ),
    ("govc find / -type h", r"/host/", ESTATE),
    ("govc gpu.vm.info", r"^(Key|Label|Summary): ", LABELS),
    ("govc device.ls", r"^pcipassthrough", LABELS),
)


def without(command: str, lines: list[str]) -> list[str]:
    """Only what must be the same."""
    patterns = [pattern for beginning, pattern, _ in DIFFERENCES if command.startswith(beginning)]
    return [line for line in lines if not any(re.search(pattern, line) for pattern in patterns)]

"""The memory that a host reserves for a running VM beside the VM's own."""

from __future__ import annotations

import math

#: vSphere Resource Management, "Sample Overhead Memory on Virtual Machines": 20.29 MiB for 256 MiB and one CPU, 168.60
#: for 16 GiB and eight. These three reproduce its 16 figures within 2 %. That larger VMs follow the line, and that a
#: vGPU adds nothing, is inferred.
_BASE_MIB, _MIB_PER_CPU, _PART_OF_MEMORY = 14.4, 4.1, 0.0074


def overhead_mib(memory_mib: int, cpus: int) -> int:
    return math.ceil(_BASE_MIB + _MIB_PER_CPU * cpus + _PART_OF_MEMORY * memory_mib)

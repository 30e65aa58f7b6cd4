"""The rungs of the ladder: cordon → drain → detached → suspend (or shut down → attach) → power on → back → uncordon;
and what is done to workloads, before and after all ladders."""

from vgpuctl.planning.steps.devices import Attach, equipped
from vgpuctl.planning.steps.labels import Label, Uncordon
from vgpuctl.planning.steps.leaving import Cordon, Drain, ShutDown, Suspend, WaitDetached
from vgpuctl.planning.steps.returning import Discard, PowerOn, WaitBack, missing_signs
from vgpuctl.planning.steps.scaling import ScaleDown, ScaleUp
from vgpuctl.planning.steps.shielding import Shield, Unshield
from vgpuctl.planning.steps.sleeping import MarkAsleep

__all__ = [
    "Attach",
    "Cordon",
    "Discard",
    "Drain",
    "Label",
    "MarkAsleep",
    "PowerOn",
    "ScaleDown",
    "ScaleUp",
    "Shield",
    "ShutDown",
    "Suspend",
    "Uncordon",
    "Unshield",
    "WaitBack",
    "WaitDetached",
    "equipped",
    "missing_signs",
]

"""The rungs of the ladder: cordon → drain → detached → suspend (or shut down → attach) → power on → back → uncordon."""

from vgpuctl.planning.steps.devices import Attach, equipped
from vgpuctl.planning.steps.labels import Label, Uncordon
from vgpuctl.planning.steps.leaving import Cordon, Drain, MarkAsleep, ShutDown, Suspend, WaitDetached
from vgpuctl.planning.steps.returning import PowerOn, WaitBack, missing_signs

__all__ = [
    "Attach",
    "Cordon",
    "Drain",
    "Label",
    "MarkAsleep",
    "PowerOn",
    "ShutDown",
    "Suspend",
    "Uncordon",
    "WaitBack",
    "WaitDetached",
    "equipped",
    "missing_signs",
]

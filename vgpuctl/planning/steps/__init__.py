"""The rungs of the ladder: cordon → drain → detached → suspend (or shut down → attach) → power on → back → uncordon.

Workloads are scaled before and after all ladders.
"""

from __future__ import annotations

from vgpuctl.planning.steps.devices import Attach, equipped
from vgpuctl.planning.steps.draining_first import DrainFirst
from vgpuctl.planning.steps.labels import Label, Uncordon
from vgpuctl.planning.steps.leaving import Cordon, Drain, ShutDown, Suspend, WaitDetached
from vgpuctl.planning.steps.returning import Discard, PowerOn, WaitBack, missing_signs
from vgpuctl.planning.steps.scaling import ScaleDown, ScaleUp
from vgpuctl.planning.steps.shielding import Shield, Unshield
from vgpuctl.planning.steps.sleeping import MarkAsleep
from vgpuctl.planning.steps.step import BaseStep, Look

#: Every kind of step: the classes that this room exports.
KINDS: tuple[type[BaseStep], ...] = tuple(
    kind
    for kind in tuple(globals().values())
    if isinstance(kind, type) and issubclass(kind, BaseStep) and kind is not BaseStep
)
_BY_NAME = {kind.__name__: kind for kind in KINDS}


def kind_named(name: str) -> type[BaseStep]:
    """Return the class of the steps of that name.

    A name that only another release knows gets the base class's words.
    """
    return _BY_NAME.get(name, BaseStep)


__all__ = [
    "KINDS",
    "Attach",
    "BaseStep",
    "Cordon",
    "Discard",
    "Drain",
    "DrainFirst",
    "Label",
    "Look",
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
    "kind_named",
    "missing_signs",
]

"""vCenter's methods, a module for each of its managers. A new module is found by being here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from vgpuctl.sim.vcenter.wire.dispatch import HANDLERS, Handler


def handlers() -> Mapping[str, Handler]:
    """By the method's name on the wire."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return HANDLERS

"""vCenter's methods, one module for each manager. A new module needs no registration."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from vgpuctl.sim.vcenter.wire.dispatch import HANDLERS, Handler


def handlers() -> Mapping[str, Handler]:
    """Import every module of this package; return the handlers by the method's name on the wire."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return HANDLERS

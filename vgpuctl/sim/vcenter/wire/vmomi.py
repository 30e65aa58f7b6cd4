"""The only import of pyVmomi, whose types are created on use: no type checker can follow it."""

from __future__ import annotations

from typing import Any

import pyVmomi
from pyVmomi import SoapAdapter, VmomiSupport

_root: Any = pyVmomi
vim = _root.vim
vmodl = _root.vmodl
support: Any = VmomiSupport
adapter: Any = SoapAdapter

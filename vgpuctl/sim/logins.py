"""The logins that the two servers accept: new secrets for each simulation, unless a test sets its own."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field


def _secret() -> str:
    return secrets.token_urlsafe(18)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logins:
    """`user` may do everything in vCenter, `reader` may only read, and `operator` nothing until it is given a role.

    Kubernetes asks for `token`, which is its administrator's.
    """

    # vSphere: the name of vCenter's first administrator.
    user: str = "administrator@vsphere.local"
    password: str = field(default_factory=_secret, repr=False)
    reader: str = "readonly@vsphere.local"
    readers_password: str = field(default_factory=_secret, repr=False)
    # The user that `vgpuctl rights vcenter` names.
    operator: str = "vgpuctl@vsphere.local"
    operators_password: str = field(default_factory=_secret, repr=False)
    token: str = field(default_factory=_secret, repr=False)

"""How a person's command asks the holder of the acting Lease to give way (decision 0023)."""

from __future__ import annotations

from contextlib import suppress

from vgpuctl.kube.client import NotFoundError, Object
from vgpuctl.kube.lease_keeper import ATTEMPTS, LeaseKeeper
from vgpuctl.kube.leases import ASKED_BY, asked_by, gives_way, in_one_line
from vgpuctl.model.errors import ChangedMeanwhileError, PassingError, VgpuctlError


class LeaseAsker:
    """One command's ask on a Lease. `may_ask` is False for a daemon: two daemons would ask each other for ever."""

    def __init__(self, keeper: LeaseKeeper, purpose: str, *, may_ask: bool) -> None:
        self._keeper, self._may_ask = keeper, may_ask
        self._ask = in_one_line(f"{keeper.identity} ({purpose})" if purpose else keeper.identity)
        self._has_asked = False

    def can_ask(self, found: Object | None) -> bool:
        return self._may_ask and gives_way(found)

    def ask(self, found: Object | None) -> None:
        """Ask the holder to give way. One ask is enough: whoever wrote it, the holder gives way once."""
        if found is None or not self.can_ask(found) or asked_by(found):
            return
        self._has_asked = True
        # A renewal was quicker, or the answer was lost: the next look shows whether the ask is there.
        with suppress(ChangedMeanwhileError, NotFoundError, PassingError):
            self._keeper.mark(found, {ASKED_BY: self._ask})

    def withdraw(self) -> None:
        """Take our ask off. If that fails, it is ignored after a while."""
        with suppress(VgpuctlError):
            for _ in range(ATTEMPTS if self._has_asked else 0):
                found = self._keeper.read()
                if found is None or asked_by(found) != self._ask:
                    return
                with suppress(ChangedMeanwhileError):
                    self._keeper.mark(found, {ASKED_BY: None})

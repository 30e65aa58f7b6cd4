"""What a host's books say of its cards. vCenter shows these books, which may be late, and not the cards."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vgpuctl.sim.vcenter.physics.records import Host

if TYPE_CHECKING:
    from vgpuctl.sim.vcenter.physics.estate import Estate


def seats_changed(estate: Estate, *hosts: Host) -> None:
    """Bring the books up to date, at once or after the lag that was set."""
    # vSphere: `graphicsInfo.vm` is a hint that may lag behind the power states. By how much is not documented.
    for host in dict.fromkeys(hosts):
        if lag_s := estate.durations.graphics_lag_s:
            estate.changed(host)
            estate.clock.after(lag_s, partial(refresh, estate, host))
        else:
            refresh(estate, host)


def refresh(estate: Estate, host: Host) -> None:
    """Read the books anew, as `RefreshGraphicsManager` asks a host to do. Those of a lost host stay as they were."""
    if host.connected:
        for card in host.cards:
            card.booked = card.vm_moids()
    estate.changed(host)

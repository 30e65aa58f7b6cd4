"""How a switch goes about it: what a timetable decides besides which workers are awake when."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OnStuck(StrEnum):
    """What happens to a host whose drain has not ended in time."""

    # kubectl drain waits on a budget for ever and does not read the cause. Here a timetable decides.
    BACK = "back"
    WAIT = "wait"
    FORCE = "force"


class OnResumeFailed(StrEnum):
    """What happens to a worker whose suspended state cannot be resumed. `boot`: discard the state and boot."""

    # vSphere: a suspended state may not resume, for example after a host upgrade. Drained, it holds nothing to keep.
    BACK = "back"
    BOOT = "boot"


class Asleep(StrEnum):
    """How a worker sleeps."""

    # vSphere: a suspend writes all memory (256 GB, say) and reads it back. A shutdown and boot may be faster.
    SUSPEND = "suspend"
    OFF = "off"


class Mode(StrEnum):
    """`swap`: each profile has its own VMs. `replace`: the same VM carries another profile in another shift."""

    SWAP = "swap"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """How a switch goes about it.

    `suspends_a_host`, `suspends_a_datastore`: how many VMs may write their memory at once; None: any number.
    `power_off_after_s`: how long a guest may take to shut down before its VM is powered off; None: never power it off.
    `all_or_nothing`: if one host is refused, none begins; if one host fails, all go back.
    """

    on_stuck: OnStuck = OnStuck.BACK
    on_resume_failed: OnResumeFailed = OnResumeFailed.BACK
    asleep: Asleep = Asleep.SUSPEND
    suspends_a_host: int | None = None
    suspends_a_datastore: int | None = None
    power_off_after_s: float | None = None
    all_or_nothing: bool = False

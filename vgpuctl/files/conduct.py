"""How a switch proceeds, as a timetable says."""

from __future__ import annotations

from typing import Any

from vgpuctl.files.reading import Reading
from vgpuctl.model.conduct import Asleep, Conduct, Mode, OnResumeFailed, OnStuck
from vgpuctl.model.share import Share

KEYS = ("on_stuck", "on_resume_failed", "asleep", "mode", "max_unavailable", "suspends", "power_off_after")


def conduct_of(reading: Reading, found: dict[str, Any]) -> Conduct:
    suspends = reading.mapping(found.get("suspends"), "suspends")
    reading.known(suspends, ("per_host", "per_datastore"), "suspends.")
    after = found.get("power_off_after")
    asleep = reading.one_of(found.get("asleep"), "asleep", Asleep.SUSPEND)
    if mode_of(reading, found) is Mode.REPLACE:
        if found.get("asleep") is not None and asleep is Asleep.SUSPEND:
            reading.wrong("asleep", "must be off with mode: replace, for the vGPU of a suspended VM cannot be changed")
        asleep = Asleep.OFF
    return Conduct(
        on_stuck=reading.one_of(found.get("on_stuck"), "on_stuck", OnStuck.BACK),
        on_resume_failed=reading.one_of(found.get("on_resume_failed"), "on_resume_failed", OnResumeFailed.BACK),
        asleep=asleep,
        suspends_a_host=reading.count(suspends.get("per_host"), "suspends.per_host"),
        suspends_a_datastore=reading.count(suspends.get("per_datastore"), "suspends.per_datastore"),
        power_off_after_s=None if after is None else reading.duration_s(after, "power_off_after", 0),
    )


def mode_of(reading: Reading, found: dict[str, Any]) -> Mode:
    return reading.one_of(found.get("mode"), "mode", Mode.SWAP)


def max_unavailable(reading: Reading, value: Any) -> Share | None:
    if value is None:
        return None
    share = None if isinstance(value, bool) else Share.read(str(value))
    if share is None:
        reading.wrong("max_unavailable", "must be a number from 1, or a share such as 25%")
    return share

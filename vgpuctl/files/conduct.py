"""How a switch proceeds, as a timetable says."""

from __future__ import annotations

from typing import Any

from vgpuctl.files.reader import FileReader
from vgpuctl.model.conduct import Asleep, Conduct, Mode, OnResumeFailed, OnStuck
from vgpuctl.model.share import Share

KEYS = ("on_stuck", "on_resume_failed", "asleep", "mode", "max_unavailable", "suspends", "power_off_after")


def parse_conduct(reader: FileReader, document: dict[str, Any]) -> Conduct:
    suspends = reader.read_mapping(document.get("suspends"), "suspends")
    reader.check_keys(suspends, ("per_host", "per_datastore"), "suspends.")
    after = document.get("power_off_after")
    asleep = reader.read_word(document.get("asleep"), "asleep", Asleep.SUSPEND)
    # vSphere: devices change only while a VM is powered off, and suspended is not off.
    if parse_mode(reader, document) is Mode.REPLACE:
        if document.get("asleep") is not None and asleep is Asleep.SUSPEND:
            reader.add_fault(
                "asleep", "must be off with mode: replace, because the vGPU of a suspended VM cannot be changed"
            )
        asleep = Asleep.OFF
    return Conduct(
        on_stuck=reader.read_word(document.get("on_stuck"), "on_stuck", OnStuck.BACK),
        on_resume_failed=reader.read_word(document.get("on_resume_failed"), "on_resume_failed", OnResumeFailed.BACK),
        asleep=asleep,
        suspends_a_host=reader.read_count(suspends.get("per_host"), "suspends.per_host"),
        suspends_a_datastore=reader.read_count(suspends.get("per_datastore"), "suspends.per_datastore"),
        power_off_after_s=None if after is None else reader.read_duration(after, "power_off_after", 0),
    )


def parse_mode(reader: FileReader, document: dict[str, Any]) -> Mode:
    return reader.read_word(document.get("mode"), "mode", Mode.SWAP)


def max_unavailable(reader: FileReader, value: Any) -> Share | None:
    if value is None:
        return None
    share = None if isinstance(value, bool) else Share.read(str(value))
    if share is None:
        reader.add_fault("max_unavailable", "must be a number from 1, or a share such as 25%")
    return share

"""One round of the daemon, for cron and systemd timers: the shift that is due, and then the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from vgpuctl.daemon.rounds import ahead, look
from vgpuctl.engine.ports import Report
from vgpuctl.files import Files
from vgpuctl.model.errors import ExitCode, PassingError, VgpuctlError
from vgpuctl.model.fleet import Fleet
from vgpuctl.operations import MakeFormer, MakeWish, Operation, exit_code


def recording(codes: list[ExitCode]) -> Callable[..., Operation]:
    """Return a maker of operations, each of which adds its exit code to `codes`."""

    class Recorded(Operation):
        def carry_out(self, make_wish: MakeWish, former: MakeFormer | None) -> Report:
            try:
                report = Operation.carry_out(self, make_wish, former)
            except VgpuctlError as error:
                codes.append(error.exit_code)
                raise
            codes.append(exit_code(report, refused=False))
            return report

    return Recorded


def code_after(fleet: Fleet, files: Files, now: datetime, codes: list[ExitCode]) -> ExitCode:
    """Return the exit code of the round: the worst of its switches, or that a host is not in the shift that is due.

    What a person or the timetable holds back is no fault.
    """
    return max([ExitCode.DONE, *codes, *_left(fleet, files, now)])


def _left(fleet: Fleet, files: Files, now: datetime) -> Iterator[ExitCode]:
    if unheard := fleet.unheard():
        raise PassingError(f"{unheard}.")
    for timetable in files.timetables.values():
        found = look(fleet, files, timetable, now)
        if found is None:
            continue
        for shift in found.shifts():
            preview, _ = ahead(fleet, found, shift, found.hosts(shift))
            if preview.refusals:
                yield ExitCode.REFUSED
            elif preview.plan:
                yield ExitCode.FAILED

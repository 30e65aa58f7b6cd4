"""A finding: something against the files as they are, or something to know before relying on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from vgpuctl.model.drs import Drs
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hosts import TypeFacts
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.timetable import Timetable


class Severity(StrEnum):
    """An error: provision or switch will be refused, or will fail. A warning: it works, with a drawback."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of the check.

    `kind`: a word for programs, which never changes. `where`: file and line; "" if it is about no line of a file.
    `what`: is said of `workers`; of `about` if it is not about workers; else of the place itself.
    """

    severity: Severity
    kind: str
    what: str
    hint: str
    where: str = ""
    about: str = ""
    workers: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the files say, beside what vCenter says."""

    fleet: Fleet
    catalogue: Catalogue
    timetables: tuple[Timetable, ...] = ()
    drs: Drs = field(default_factory=Drs)
    host_facts: tuple[TypeFacts, ...] = ()

    def wanted(self, worker: Worker) -> tuple[str, ...]:
        given = (profile.vgpus for timetable in self.timetables for profile in timetable.profiles_of(worker.name))
        by_a_shift = any(sorted(vgpus) == sorted(worker.vgpus) for vgpus in given)
        return worker.vgpus if by_a_shift else self.catalogue.profile(worker.profile).vgpus

    def put_to_sleep(self, worker: Worker) -> bool:
        """True if a timetable that keeps this worker has a shift that it sleeps through."""
        keepers = (timetable for timetable in self.timetables if timetable.keeps(worker.name, worker.profile))
        return any(not shift.wakes(worker) for timetable in keepers for shift in timetable.shifts.values())


def place(worker: Worker) -> str:
    return worker.chosen_at[0] if worker.chosen_at else ""


def joined(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Merge equal findings of several workers into one. Errors come first, then the order of the files."""
    together: dict[Finding, dict[str, None]] = {}
    for finding in findings:
        together.setdefault(replace(finding, workers=()), {}).update(dict.fromkeys(finding.workers))
    found = (replace(finding, workers=tuple(workers)) for finding, workers in together.items())
    return tuple(sorted(found, key=lambda each: (each.severity, _by_line(each.where))))


def _by_line(where: str) -> tuple[str, int]:
    path, _, line = where.rpartition(":")
    return path, int(line) if line.isdecimal() else 0

"""What people write: profiles.yaml and schedules/*.yaml, read into the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vgpuctl.basics.names import Names
from vgpuctl.basics.nearest import nearest
from vgpuctl.files.catalogue import parse_catalogue
from vgpuctl.files.reader import FileReader, NameBudget
from vgpuctl.files.timetables import parse_timetable
from vgpuctl.model.errors import UsageError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.profiles import Catalogue, Profile
from vgpuctl.model.timetable import Timetable
from vgpuctl.planning.signs import files_sign

MOST_TIMETABLES = 50


@dataclass(frozen=True, slots=True)
class Files:
    """What people wrote: the catalogue, and the timetables by name."""

    catalogue: Catalogue
    timetables: Mapping[str, Timetable]
    _signs: dict[str, str] = field(default_factory=dict, init=False, compare=False, repr=False)

    def sign(self, timetable: str) -> str:
        """Return what a timetable and the catalogue say, as one short text. It is worked out once."""
        # Measured: of 10,000 named workers it takes 0.6 s, and a running switch asks each second.
        if timetable not in self._signs:
            self._signs[timetable] = files_sign(self.catalogue, self.timetables[timetable])
        return self._signs[timetable]

    def check_unique(self, fleet: Fleet) -> None:
        """Refuse a worker or workload in two timetables. If no file names it, this shows only once it is seen."""
        for worker in fleet.workers.values():
            names = [t.name for t in self.timetables.values() if t.keeps(worker.name, worker.profile)]
            if len(names) > 1:
                raise UsageError(f"{worker.name} is in two timetables: {names[0]} and {names[1]}.")
        for key, workload in fleet.workloads.items():
            names = [t.name for t in self.timetables.values() if any(s.scales(workload) for s in t.shifts.values())]
            if len(names) > 1:
                raise UsageError(
                    f"{key} is scaled by two timetables: {names[0]} and {names[1]}.", hint="Take it out of one of them."
                )

    @property
    def scales(self) -> bool:
        return any(timetable.scales for timetable in self.timetables.values())

    def shift_profiles(self, worker: str) -> tuple[Profile, ...]:
        """Return the profiles that a worker's shifts give it, if they change with the shifts."""
        return tuple(profile for table in self.timetables.values() for profile in table.profiles_of(worker))

    def timetable_of(self, shift: str, name: str | None = None) -> Timetable:
        """Return the timetable that has this shift. If several have it, `name` decides."""
        if name is not None and name not in self.timetables:
            raise UsageError(f"No timetable is called {name}{nearest(name, self.timetables) or '.'}")
        candidates = [t for t in self.timetables.values() if name in {None, t.name}]
        found = [timetable for timetable in candidates if shift in timetable.shifts]
        if not found:
            shifts = [shift for timetable in candidates for shift in timetable.shifts]
            known = f" Known: {', '.join(sorted(set(shifts)))}." if shifts else ""
            raise UsageError(
                f"No timetable has a shift {shift}{nearest(shift, shifts) or '.'}", hint=known.strip() or None
            )
        if len(found) > 1:
            names = ", ".join(timetable.name for timetable in found)
            raise UsageError(
                f"Several timetables have a shift {shift}: {names}.", hint="Choose one with --timetable NAME."
            )
        return found[0]


def read_files(profiles: Path, schedules: Path) -> Files:
    """Read all files, or raise one error with the faults of all of them."""
    readers, files = read_and_collect(profiles, schedules)
    if faulty := [reader for reader in readers if reader.faults]:
        raise UsageError("\n".join(reader.report() for reader in faulty), hint="Nothing was changed.")
    return files


def read_and_collect(profiles: Path, schedules: Path) -> tuple[list[FileReader], Files]:
    """Read all files as far as they can be understood. Their faults are in the readers."""
    budget = NameBudget()
    readers = [FileReader(profiles, budget)]
    catalogue = parse_catalogue(readers[0])
    timetables: list[Timetable] = []
    taken: dict[str, str] = {}
    for path in (path for path in _paths(schedules) if path.exists()):
        readers.append(FileReader(path, budget))
        timetables.append(parse_timetable(readers[-1], catalogue))
        _check_unique_workers(readers[-1], timetables[-1], catalogue, taken)
    if not readers[0].is_yaml:
        # Faults about profiles that could not be read would be untrue.
        readers = [reader for reader in readers if not reader.is_yaml]
    return readers, Files(catalogue, {timetable.name: timetable for timetable in timetables})


def _paths(schedules: Path) -> list[Path]:
    paths = sorted(schedules.glob("*.yaml")) if schedules.is_dir() else [schedules]
    if len(paths) > MOST_TIMETABLES:
        raise UsageError(f"{schedules} has more than {MOST_TIMETABLES} timetables.")
    return paths


def _check_unique_workers(reader: FileReader, table: Timetable, catalogue: Catalogue, taken: dict[str, str]) -> None:
    """Report workers in two timetables. Workers that no file names can be checked only once they are seen.

    `taken`: the timetables of workers by name; this timetable's workers are added.
    """
    shifts = table.shifts.values()
    profiles = {profile for shift in shifts for profile in shift.profiles}
    names = Names(tuple(pattern for shift in shifts for pattern in shift.workers.patterns))
    workers = [name for name, profile in catalogue.named.items() if profile in profiles or name in names]
    shared: dict[str, list[str]] = {}
    for name in workers:
        if (other := taken.setdefault(name, table.name)) != table.name:
            shared.setdefault(other, []).append(name)
    for other, both in shared.items():
        more = f", and so are {len(both) - 1} more" if both[1:] else ""
        reader.add_fault("shifts", f"{both[0]} is in two timetables: {other} and {table.name}{more}")

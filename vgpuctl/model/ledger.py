"""What the cluster remembers for all instances: departures, orders of people, and what became of starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vgpuctl.model.departure import Departure, Key
from vgpuctl.model.orders import Maintenance, Orders, Override, Pause
from vgpuctl.model.outcome import Outcome

Entry = Departure | Override | Pause | Maintenance | Outcome
#: The name of an entry. A departure has its timetable and host; all others begin with "" and their kind.
EntryKey = tuple[str, ...]
#: Entries to write; None removes one.
Changes = Mapping[EntryKey, Entry | None] | Mapping[EntryKey, Departure]

PAUSE: EntryKey = ("", "pause")


def override_key(timetable: str) -> EntryKey:
    return "", "override", timetable


def maintenance_key(host: str) -> EntryKey:
    return "", "maintenance", host


def outcome_key(timetable: str, host: str) -> EntryKey:
    return "", "outcome", timetable, host


def key_of(entry: Entry) -> EntryKey:
    """Return the name under which an entry is kept."""
    match entry:
        case Departure():
            return entry.key
        case Override():
            return override_key(entry.timetable)
        case Maintenance():
            return maintenance_key(entry.host)
        case Outcome():
            return outcome_key(*entry.key)
        case Pause():
            return PAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The entries that could be read. `outcomes`: by timetable and host, as departures are."""

    departures: Mapping[Key, Departure] = field(default_factory=dict)
    orders: Orders = field(default_factory=Orders)
    outcomes: Mapping[Key, Outcome] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Mapping[EntryKey, Entry]) -> Ledger:
        found = list(entries.values())
        pauses = [entry for entry in found if isinstance(entry, Pause)]
        return cls(
            departures={entry.key: entry for entry in found if isinstance(entry, Departure)},
            orders=Orders(
                overrides={entry.timetable: entry for entry in found if isinstance(entry, Override)},
                pause=pauses[0] if pauses else None,
                maintenance={entry.host: entry for entry in found if isinstance(entry, Maintenance)},
            ),
            outcomes={entry.key: entry for entry in found if isinstance(entry, Outcome)},
        )

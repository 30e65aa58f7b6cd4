"""Pods that wait for one of our profiles, and when that profile comes: people ask why these pods are Pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.pods import Pod
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.selectors import Selector
from vgpuctl.reporting.timetable_state import TimetableState, Waking


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Whether a profile is awake, and if not, when a timetable wakes it.

    `lacking`: an awake worker should carry it and does not.
    """

    awake: bool = False
    lacking: bool = False
    workers: int = 0
    waking: Waking | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A pod, the profiles that would do for it, and the best outlook of these profiles."""

    pod: Pod
    profiles: tuple[str, ...]
    outlook: Outlook


def waiting(fleet: Fleet, catalogue: Catalogue, states: tuple[TimetableState, ...]) -> Iterator[Waiting]:
    # Kubernetes: pods for tonight's profile are Pending all day, and people ask why.
    outlooks = outlooks_of(fleet, catalogue, states)
    for pod in fleet.waiting:
        if profiles := wanted_profiles(pod, catalogue):
            yield Waiting(pod=pod, profiles=profiles, outlook=_best([outlooks[name] for name in profiles]))


def outlooks_of(fleet: Fleet, catalogue: Catalogue, states: tuple[TimetableState, ...]) -> dict[str, Outlook]:
    """Return the outlook of every profile, in one walk over the workers."""
    wakings: dict[str, list[Waking]] = {name: [] for name in catalogue.profiles}
    for state in states:
        for worker in state.workers:
            for profile in may_carry(worker, states):
                if profile in wakings and (found := state.waking(worker, profile)):
                    wakings[profile].append(found)
    running = [worker for worker in fleet.workers.values() if worker.on]
    awake = {catalogue.carried(worker.vgpus) for worker in running}
    lacking = {carries(worker, catalogue, states) for worker in running} - awake
    workers = Counter(profile for worker in fleet.workers.values() for profile in may_carry(worker, states))
    return {
        name: Outlook(
            awake=name in awake,
            lacking=name in lacking,
            workers=workers[name],
            waking=min(found, key=lambda waking: waking.start, default=None),
        )
        for name, found in wakings.items()
    }


def may_carry(worker: Worker, states: tuple[TimetableState, ...]) -> tuple[str, ...]:
    """Return the profiles that the worker may carry: the profiles of its shifts, else the one in profiles.yaml."""
    given = (profile.name for each in states for profile in each.timetable.profiles_of(worker.name))
    return tuple(dict.fromkeys(given)) or (worker.profile,)


def carries(worker: Worker, catalogue: Catalogue, states: tuple[TimetableState, ...]) -> str:
    """Return the worker's profile; if its profile changes with the shift, the one it has now."""
    by_turns = may_carry(worker, states) != (worker.profile,)
    return (catalogue.carried(worker.vgpus) if by_turns else worker.profile) or ""


def _best(outlooks: list[Outlook]) -> Outlook:
    """Return the best outlook: awake before coming, the earliest first; outlooks that never come are last."""

    def rank(outlook: Outlook) -> tuple[bool, bool, float]:
        start = outlook.waking.start.timestamp() if outlook.waking else 0.0
        return not outlook.awake, outlook.waking is None, start

    return min(outlooks, key=rank)


def wanted_profiles(pod: Pod, catalogue: Catalogue) -> tuple[str, ...]:
    """Return our profiles that would do for this pod, if its nodeSelector or required affinity asks for any."""
    chosen = pod.selector.get(catalogue.label)
    if chosen is not None:
        return (chosen,) if chosen in catalogue.profiles else ()
    terms = pod.demand.affinity if pod.demand else ()
    asking = [asked for term in terms if (asked := _about(term, catalogue.label)).expressions]
    if len(asking) < len(terms) or not asking:
        return ()
    return tuple(name for name in catalogue.profiles if any(t.matches({catalogue.label: name}) for t in asking))


def _about(term: Selector, label: str) -> Selector:
    """Return the part of the term that asks for this label to be there."""
    return Selector(expressions=tuple(e for e in term.expressions if e[0] == label and e[1] in {"In", "Exists"}))

"""Entries of the files that match no worker, or match one twice."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.basics.nearest import nearest
from vgpuctl.model.profiles import Catalogue
from vgpuctl.planning.checks.devices import MOST_VGPUS, TooManyVgpus
from vgpuctl.reporting.profiles_check.finding import Compared, Finding, Severity, place


def of_profiles(catalogue: Catalogue) -> Iterator[Finding]:
    used = {choice.profile for choice in catalogue.choices}
    for profile in catalogue.profiles.values():
        about = f"profile {profile.name}"
        if profile.name not in used:
            yield Finding(
                severity=Severity.WARNING,
                kind="unused-profile",
                about=about,
                where=profile.where,
                what="no entry of workers uses it",
                hint="Give it to a worker under workers, or take it out.",
            )
        if len(profile.vgpus) > MOST_VGPUS:
            yield Finding(
                severity=Severity.ERROR,
                kind="too-many-vgpus",
                about=about,
                where=profile.where,
                what=f"has {len(profile.vgpus)} vGPUs; a VM has at most {MOST_VGPUS}",
                hint=TooManyVgpus.way_out,
            )


def of_entries(compared: Compared) -> Iterator[Finding]:
    yield from _nobody(compared)
    yield from _without_a_vm(compared)
    yield from _timetables(compared)


def _nobody(compared: Compared) -> Iterator[Finding]:
    """Yield entries that choose no VM. Names that are written out are reported one by one elsewhere."""
    taken = {where for worker in compared.fleet.workers.values() for where in worker.chosen_at}
    for choice in compared.catalogue.choices:
        reported = choice.by_name_alone and choice.names is not None and choice.names.plain
        if choice.where not in taken and not reported:
            yield Finding(
                severity=Severity.WARNING,
                kind="chooses-nobody",
                where=choice.where,
                about="this entry of workers",
                what="chooses no VM that no other entry chooses",
                hint="Compare it with vCenter's names, folders and clusters, and the nodes' labels.",
            )


def _without_a_vm(compared: Compared) -> Iterator[Finding]:
    fleet = compared.fleet
    for name in fleet.missing:
        near = nearest(name, (*fleet.workers, *fleet.strangers)) if len(fleet.missing) < 100 else ""
        yield Finding(
            severity=Severity.WARNING,
            kind="no-such-vm",
            where=compared.catalogue.where(name),
            workers=(name,),
            what=f"no VM of vCenter has this name{near}",
            hint="Write the name as vCenter shows it, or take it out until the VM is there.",
        )


def _timetables(compared: Compared) -> Iterator[Finding]:
    for worker in compared.fleet.workers.values() if compared.timetables else ():
        keepers = [t.name for t in compared.timetables if t.keeps(worker.name, worker.profile)]
        if not keepers and compared.wanted(worker):
            yield Finding(
                severity=Severity.WARNING,
                kind="in-no-timetable",
                where=place(worker),
                workers=(worker.name,),
                what="in no timetable: nothing puts it to sleep, so it keeps its card while it runs",
                hint="Name it, or its profile, in a shift, unless it shall run day and night.",
            )
        if len(keepers) > 1:
            yield Finding(
                severity=Severity.ERROR,
                kind="in-two-timetables",
                where=place(worker),
                workers=(worker.name,),
                what=f"in several timetables, which contradict each other: {', '.join(keepers)}",
                hint="Leave it in one of them.",
            )

"""Each reason that stops a host has a code; a check of workers is written once, and every command finds it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.fleets import CATALOGUE, HALF, QUARTER, fleet, node, timetable, worker
from tests.support.paths import ROOT
from vgpuctl.model.codes import Coded, coded_kinds
from vgpuctl.model.fleet import Mmio, Task, Worker
from vgpuctl.model.hold import Hold
from vgpuctl.model.hosts import Host
from vgpuctl.planning.checks.refusals import refusals
from vgpuctl.planning.checks.workers import KINDS, InDoubt, Obstacle
from vgpuctl.planning.wishes import Provisioning, provision_wish, switch_wish
from vgpuctl.reporting.causes import Cause
from vgpuctl.reporting.codes import more_about, table
from vgpuctl.reporting.profiles_check import Compared, check

PLAIN = Host(name="esx-1")
#: For each kind of obstacle, a worker that has it (it shall be on by day and asleep at night), and its host.
TROUBLED: dict[str, tuple[Worker, Host]] = {
    "VG101": (worker("worker-1", doubts=("two nodes match",)), PLAIN),
    "VG102": (worker("worker-1", managed_by="com.vmware.wcp"), PLAIN),
    "VG103": (worker("worker-1", question="moved or copied?"), PLAIN),
    "VG104": (worker("worker-1", tasks=(Task(key="t", kind="createSnapshot", running=True),)), PLAIN),
    "VG105": (worker("worker-1", fixed_devices=("an SR-IOV network card",)), PLAIN),
    "VG106": (worker("worker-1"), replace(PLAIN, not_suspendable=frozenset({QUARTER}))),
    "VG107": (worker("worker-1", on=False), replace(PLAIN, maintenance=True)),
    "VG108": (worker("worker-1", HALF, on=False, mmio=Mmio(efi=False)), PLAIN),
    "VG115": (worker("worker-1", tracing=("pciPassthru0.cfg.enable_uvm",)), PLAIN),
    "VG116": (worker("worker-1", HALF, on=False, host=""), PLAIN),
    "VG117": (worker("worker-1", node=node("worker-1", hold=Hold())), PLAIN),
}


def refused(troubled: Worker, host: Host) -> set[str]:
    """Return the codes with which a night, a day and provision are refused."""
    some = replace(fleet(troubled), hosts={host.name: host})
    day_night = timetable(day=(troubled.name,), night=())
    wishes = [switch_wish(some, CATALOGUE, day_night, shift) for shift in ("day", "night")]
    wishes.append(provision_wish(some, CATALOGUE, Provisioning()))
    return {refusal.code for wish in wishes for refusal in refusals(some, wish)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_each_obstacle_is_refused_and_stands_in_the_check_of_the_files(kind: type[Obstacle]) -> None:
    troubled, host = TROUBLED[kind.code]
    assert kind.code in refused(troubled, host)
    some = replace(fleet(troubled), hosts={host.name: host})
    compared = Compared(fleet=some, catalogue=CATALOGUE, timetables=(timetable(day=(troubled.name,), night=()),))
    found = {finding.kind for finding in check(compared) if finding.workers == (troubled.name,)}
    assert (kind.kind in found) is not kind.passing


def test_a_worker_without_an_obstacle_is_not_refused_for_one() -> None:
    assert refused(worker("worker-1", node=node("worker-1")), PLAIN).isdisjoint(TROUBLED)


def test_every_kind_has_a_code_of_its_own_and_says_what_to_do() -> None:
    kinds = list(coded_kinds())
    assert len({kind.code for kind in kinds}) == len(kinds) > 25
    assert all(kind.title.endswith(".") and kind.way_out for kind in kinds)
    assert {kind.code[:3] for kind in coded_kinds(Cause)} == {"VG4"}
    assert not [kind for kind in below(Coded) if not kind.__subclasses__() and not kind.code]


def below(base: type[Coded]) -> list[type[Coded]]:
    return [kind for each in base.__subclasses__() for kind in (each, *below(each))]


def test_the_page_has_a_row_for_each_code() -> None:
    page = (ROOT / "docs" / "reference" / "codes.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `VG")]
    assert rows == [f"| `{kind.code}` | {kind.title} | {kind.way_out} |" for kind in table().values()]


def test_the_line_that_leads_to_explanations_names_each_code_once() -> None:
    assert more_about(["VG301", "", "VG202", "VG301"]) == "More: vgpuctl explain VG301 VG202"
    assert more_about([""]) == ""
    assert InDoubt.code in table()

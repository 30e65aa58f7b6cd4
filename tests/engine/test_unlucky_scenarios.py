"""How the product ends in scenarios whose misfortune no file tells, in virtual time over the simulated physics."""

from __future__ import annotations

from dataclasses import replace

from tests.support.rehearsal import Rehearsal
from vgpuctl.model.conduct import Conduct, OnResumeFailed
from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.scenarios import EXAMPLES
from vgpuctl.sim.scenarios.scenario import read_scenario

DAY = {"worker-1", "worker-2", "worker-3", "worker-4"}


def begun(name: str) -> Rehearsal:
    durations = Durations()
    rehearsal = Rehearsal.of(read_scenario(EXAMPLES[name], durations), durations)
    rehearsal.wait(60)
    return rehearsal


def test_a_state_from_before_a_patch_sends_the_host_back_to_the_day() -> None:
    patched = begun("patched-host")
    ended = patched.switch("night")
    assert (ended.finished, "saved state of 'worker-5'" in str(ended.state.going_back["esx-1"])) == (True, True)
    assert (patched.awake(), patched.cordoned() & DAY, patched.broken) == (DAY, set(), [])


def test_a_state_from_before_a_patch_is_left_for_a_boot_where_the_timetable_says_so() -> None:
    patched = begun("patched-host")
    boots = Conduct(on_resume_failed=OnResumeFailed.BOOT)
    timetables = {name: replace(each, conduct=boots) for name, each in patched.files.timetables.items()}
    patched.files = replace(patched.files, timetables=timetables)
    ended = patched.switch("night")
    assert (ended.finished, ended.state.going_back, patched.awake()) == (True, {}, {"worker-5"})
    assert patched.broken == []

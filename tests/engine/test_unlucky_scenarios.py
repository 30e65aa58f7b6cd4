"""How the product ends where hosts crash, were patched or lack licences: in virtual time over the simulated physics."""

from __future__ import annotations

from dataclasses import replace

from tests.support.day import at_work
from tests.support.rehearsal import Rehearsal
from vgpuctl.model.conduct import Conduct, OnResumeFailed
from vgpuctl.model.fleet import Fleet
from vgpuctl.sim.inventory import Durations, default_inventory
from vgpuctl.sim.scenarios import EXAMPLES
from vgpuctl.sim.scenarios.scenario import read_scenario

BOOTS = Conduct(on_resume_failed=OnResumeFailed.BOOT)
DAY = {"worker-1", "worker-2", "worker-3", "worker-4"}


def begun(name: str, conduct: Conduct | None = None) -> Rehearsal:
    durations = Durations()
    rehearsal = Rehearsal.of(read_scenario(EXAMPLES[name], durations), durations)
    timetables = rehearsal.files.timetables
    changed = {name: replace(each, conduct=conduct or each.conduct) for name, each in timetables.items()}
    rehearsal.files = replace(rehearsal.files, timetables=changed)
    rehearsal.wait(60)
    return rehearsal


def test_a_state_from_before_a_patch_sends_the_host_back_to_the_day() -> None:
    patched = begun("patched-host")
    ended = patched.switch("night")
    assert (ended.finished, "saved state of 'worker-5'" in str(ended.state.going_back["esx-1"])) == (True, True)
    assert (patched.awake(), patched.cordoned() & DAY, patched.broken) == (DAY, set(), [])


def test_a_state_from_before_a_patch_is_left_for_a_boot_where_the_timetable_says_so() -> None:
    patched = begun("patched-host", BOOTS)
    ended = patched.switch("night")
    assert (ended.finished, ended.state.going_back, patched.awake()) == (True, {}, {"worker-5"})
    assert patched.broken == []


def test_a_drained_worker_is_booted_although_its_node_still_lists_its_daemonset_pods() -> None:
    switch = Rehearsal.of(at_work(default_inventory()), Durations())
    timetables = switch.files.timetables
    changed = {name: replace(each, conduct=BOOTS) for name, each in timetables.items()}
    switch.files = replace(switch.files, timetables=changed)
    switch.wait(60)
    assert switch.switch("night").finished
    assert all(node.pods for name in DAY if (node := switch.fleet().worker(name).node))
    host = switch.world.estate.hosts["esx-1"]
    host.software = host.software._replace(build="24957456")
    ended = switch.switch("day")
    assert (ended.finished, ended.state.going_back, switch.awake(), switch.broken) == (True, {}, DAY, [])


def test_where_a_host_crashed_the_other_proceeds_and_ha_restarts_what_finds_room() -> None:
    crash = begun("host-crash")
    database = crash.world.estate.vms["database"]
    assert (database.power.value, database.host.name) == ("poweredOn", "esx-1")
    ended = crash.switch("night")
    assert [str(refusal.host) for refusal in crash.refusals] == ["esx-2"]
    assert "worker-10 cannot start: esx-2 is not connected to vCenter" in crash.refusals[0].message
    assert (ended.finished, ended.state.gave_up, crash.broken) == (True, {}, [])
    assert {name for name in crash.awake() if name in DAY | {"worker-5"}} == {"worker-5"}


def test_a_host_that_is_back_after_its_crash_takes_part_again() -> None:
    crash = begun("host-crash")
    crash.switch("night")
    crash.world.estate.connect(crash.world.estate.hosts["esx-2"])
    crash.wait(60)
    assert crash.switch("night").finished
    assert (crash.awake(), crash.broken) == ({"worker-5", "worker-10"}, [])


def test_the_night_comes_without_a_licence_which_no_look_shows() -> None:
    short = begun("no-licences")
    assert short.switch("night").finished
    assert (short.awake(), short.refusals, short.remarks) == ({"worker-5"}, (), ())
    licences, vms = short.world.estate.licences, short.world.estate.vms
    assert licences.status(vms["worker-5"]) == "Unlicensed"
    short.wait(24 * 3600)
    assert licences.status(vms["worker-5"]) == "Licensed", "the leases of the sleepers have expired"


def test_a_host_that_is_lost_during_a_resume_costs_no_suspended_state() -> None:
    """The timetable allows to discard states that do not resume, but this one is well."""
    crash = begun("host-crash", BOOTS)
    estate = crash.world.estate
    lost: list[str] = []

    def lose_host(fleet: Fleet) -> None:
        worker = fleet.worker("worker-5")
        if not lost and worker.busy_with and worker.busy_with.kind == "powerOn":
            lost.append(worker.host)
            estate.stop_responding(estate.hosts["esx-1"])
            crash.world.clock.after(20, lambda: estate.connect(estate.hosts["esx-1"]))

    crash.watch = lose_host
    assert crash.switch("night").finished
    assert (lost, [key for key in crash.sent if "Discard" in key]) == (["esx-1"], [])
    assert "worker-5" in crash.awake()
    assert crash.broken == []


def test_a_crash_in_the_middle_of_a_switch_stops_one_host_and_the_next_run_ends_it() -> None:
    switch = Rehearsal.of(at_work(default_inventory(hosts=2)), Durations())
    switch.wait(60)
    host = switch.world.estate.hosts["esx-1"]

    def crash_at_a_suspend(fleet: Fleet) -> None:
        tasks = (worker.busy_with for worker in fleet.on_host("esx-1"))
        if host.connected and any(task and task.kind == "suspend" for task in tasks):
            switch.world.estate.crash(host)

    switch.watch = crash_at_a_suspend
    ended = switch.switch("night")
    assert (ended.finished, set(ended.state.gave_up), switch.broken) == (True, {"esx-1"}, [])
    assert switch.awake() & {f"worker-{n}" for n in range(6, 11)} == {"worker-10"}
    switch.watch = lambda _: None
    switch.world.estate.connect(host)
    switch.wait(60)
    assert switch.switch("night").finished
    assert (switch.awake(), switch.broken) == ({"worker-5", "worker-10"}, [])

"""A run is changed while it lasts: it takes up more hosts, or ends at the next safe point."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.fleets import CATALOGUE, WHOLE, fleet, node, timetable, worker
from tests.support.ports import Ports
from vgpuctl.engine.ports import Report
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.run_state import RunState
from vgpuctl.engine.runner import STEER_EVERY_S, Runner
from vgpuctl.engine.steering import Steering, Turn, beginning_anew, joined
from vgpuctl.model.errors import PassingError
from vgpuctl.model.fleet import Fleet, Task
from vgpuctl.model.ledger import Changes
from vgpuctl.model.requests import PatchNode
from vgpuctl.model.wish import Wish
from vgpuctl.planning.wishes import switch_wish
from vgpuctl.reporting.causes import StepRefused

TABLE = timetable(day=("worker-1", "worker-6"), night=("worker-5",))


def two_hosts() -> Fleet:
    return fleet(
        worker("worker-1", node=node("worker-1")),
        worker("worker-5", WHOLE, on=False),
        worker("worker-6", host="esx-2", node=node("worker-6")),
    )


def night(some: Fleet, *hosts: str) -> Wish:
    wish = switch_wish(some, CATALOGUE, TABLE, "night")
    return wish.only(name for name in wish.workers if some.workers[name].host in hosts)


def run(ports: Ports, steering: Steering) -> Report:
    """Three looks, two seconds apart, and each one steered."""
    ports.look_s = 2 * STEER_EVERY_S
    ports.runner = Runner(ports.world(), Goal(wish=night(ports.some, "esx-1")), ports, steering)
    return ports.runner.run()


def touched(ports: Ports) -> set[str]:
    return {request.node for request in ports.sent if isinstance(request, PatchNode)}


def test_a_host_is_taken_up_once_its_departure_is_written() -> None:
    ports = Ports(two_hosts(), held_at=[])
    wish = night(ports.some, "esx-1")
    more = night(ports.some, "esx-2")
    record: Changes = {left.key: left for left in more.departures.values() if left.host == "esx-2"}
    turn = Turn(goal=Goal(wish=joined(wish, more)), hosts=frozenset({"esx-2"}), record=record)
    run(ports, lambda _fleet, goal, _state: turn if "worker-6" not in goal.wish.workers else None)
    assert touched(ports) == {"worker-1", "worker-5", "worker-6"}
    assert ports.written == [record]


def test_a_host_whose_departure_cannot_be_written_does_not_begin() -> None:
    class Full(Ports):
        def write(self, changed: Changes) -> None:
            raise PassingError("the server is busy.")

    ports = Full(two_hosts(), held_at=[])
    more = night(ports.some, "esx-1", "esx-2")
    turn = Turn(goal=Goal(wish=more), hosts=frozenset({"esx-2"}), record={("", "pause"): None})
    run(ports, lambda *_: turn)
    assert touched(ports) == {"worker-1", "worker-5"}


def test_a_stop_leaves_vcenters_tasks_and_does_not_wait_for_them() -> None:
    """A suspend that is under way may take many minutes; the next look finds its task in the fleet."""
    busy = Task(key="task-1", kind="VirtualMachine.suspend", running=True)
    some = two_hosts()
    ports = Ports(some.with_this(replace_tasks(some, busy)), held_at=[])
    looks: list[Any] = []

    def stop(*seen: Any) -> Turn:
        looks.append(seen)
        return Turn(stop="anna asks to be let pass.")

    report = run(ports, stop)
    assert report.interrupted
    assert len(looks) == 1
    assert ports.sent == []


def replace_tasks(some: Fleet, task: Task) -> Any:
    return replace(some.workers["worker-1"], tasks=(task,))


def test_a_fault_in_the_steering_changes_nothing() -> None:
    ports = Ports(two_hosts(), held_at=[])

    def faulty(*_: Any) -> Turn:
        raise ZeroDivisionError

    run(ports, faulty)
    assert touched(ports) == {"worker-1", "worker-5"}


def test_a_host_that_begins_anew_has_not_failed_yet() -> None:
    why = StepRefused("worker-1", "suspend", "why")
    state = RunState().turn_back("esx-1", why, ["worker-1"]).give_up("esx-2", why).hold_back(["esx-1"], why)
    anew = beginning_anew(state, two_hosts(), frozenset({"esx-1"}))
    assert (set(anew.going_back), set(anew.gave_up), set(anew.held_back)) == (set(), {"esx-2"}, set())

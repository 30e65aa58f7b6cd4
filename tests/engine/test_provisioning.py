"""The reactor, in virtual time: stories of a provision."""

from __future__ import annotations

from tests.support.fleets import CATALOGUE, fleet, pod, with_node, with_worker, worker
from tests.support.virtual import VirtualWorld
from vgpuctl.engine import ends as endings
from vgpuctl.engine.dispatcher import Send
from vgpuctl.engine.reactor import Goal
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Plan
from vgpuctl.planning.steps import Attach
from vgpuctl.planning.wishes import Provisioning, former_wish, provision_wish

HOSTS = ("esx-1", "esx-2", "esx-3")


def three_hosts() -> Fleet:
    """On each a worker that must be restarted, because its memory is not reserved."""
    return fleet(*(worker(f"w-{host}", host=host, memory_locked=False) for host in HOSTS))


def provisioning(some: Fleet, how: Provisioning, **more: object) -> VirtualWorld:
    wish = provision_wish(some, CATALOGUE, how)
    return VirtualWorld(some, Goal(wish=wish, former=former_wish(wish)), **more)  # type: ignore[arg-type]


def out(world: VirtualWorld) -> set[str]:
    return {w.name for w in world.fleet.workers.values() if not w.on or (w.node and w.node.unschedulable)}


def ends(world: VirtualWorld) -> dict[str, str]:
    return {report.host: report.end for report in endings.ends(world.goal.wish, world.fleet, world.state, Plan())}


def test_workers_go_one_after_another_and_all_come_back() -> None:
    world = provisioning(three_hosts(), Provisioning(max_unavailable=1))
    most: list[int] = []
    for tenth in range(300):
        world.at(tenth / 10, lambda: most.append(len(out(world))))
    assert world.run().finished
    assert max(most) == 1
    assert out(world) == set()
    assert all(w.memory_locked for w in world.fleet.workers.values())
    assert world.broken == []


def test_a_rollout_that_fails_on_one_host_is_not_carried_on_to_the_next() -> None:
    def refuse(send: Send, nth: int) -> tuple[str, bool] | None:
        return ("its datastore is full", False) if send.key.step == Attach.of("w-esx-2") else None

    world = provisioning(three_hosts(), Provisioning(max_unavailable=1), refuse=refuse)
    assert world.run().finished
    assert ends(world) == {"esx-1": "done", "esx-2": "went back", "esx-3": "not begun"}
    assert "esx-2" in str(world.state.held_back["esx-3"])
    assert out(world) == set(), "what was out is given back"
    assert not any("esx-3" in key for _, key in world.sent)


def test_a_guest_that_hears_nothing_is_powered_off_only_where_that_is_allowed() -> None:
    deaf = frozenset({"w-esx-1"})
    patient = provisioning(three_hosts(), Provisioning(max_unavailable=1), deaf=deaf)
    assert patient.run().finished
    assert ends(patient)["esx-1"] == "went back"
    assert not any(key.endswith("power-off") for _, key in patient.sent)
    firm = provisioning(three_hosts(), Provisioning(max_unavailable=1, power_off_after_s=90), deaf=deaf)
    assert firm.run().finished
    assert ends(firm) == dict.fromkeys(HOSTS, "done")
    ((when, _),) = [sent for sent in firm.sent if sent[1].endswith("power-off")]
    asked = next(when for when, key in firm.sent if key == "ShutDown/w-esx-1/")
    assert 90 <= when - asked <= 91


def test_a_guest_that_shuts_down_already_is_not_asked_again() -> None:
    some = with_worker(three_hosts(), "w-esx-1", shutting_down=True)
    world = provisioning(some, Provisioning(max_unavailable=1))
    world.at(30.0, lambda: world._off("w-esx-1"))
    assert world.run().finished
    assert ends(world) == dict.fromkeys(HOSTS, "done")
    assert "ShutDown/w-esx-1/" not in {key for _, key in world.sent}


def test_going_back_waits_for_a_guest_that_another_process_asked_to_shut_down() -> None:
    """Its node would take pods again that end with the guest."""

    def refuse(send: Send, nth: int) -> tuple[str, bool] | None:
        return ("no room", False) if send.key.step.kind == "Drain" else None

    some = with_worker(three_hosts(), "w-esx-1", shutting_down=True)
    some = with_node(some, "w-esx-1", pods=(pod("p", "w-esx-1"),))
    world = provisioning(some, Provisioning(max_unavailable=1), refuse=refuse)
    world.at(30.0, lambda: world._off("w-esx-1"))
    assert world.run().finished
    assert ends(world)["esx-1"] == "went back"
    ((when, _),) = [sent for sent in world.sent if sent[1] == "Uncordon/w-esx-1/"]
    assert when > 30.0
    assert out(world) == set()

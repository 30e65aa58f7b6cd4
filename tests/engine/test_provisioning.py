"""The reactor, in virtual time: stories of a provision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tests.support.fleets import CATALOGUE, QUARTER, fleet, pod, with_node, with_worker, worker
from tests.support.virtual import VirtualWorld
from vgpuctl.engine import ends as endings
from vgpuctl.engine.dispatcher import Send
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.run_state import Attempt
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Plan
from vgpuctl.model.step_id import StepId
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


@dataclass
class LateAnswer(VirtualWorld):
    """Carries out one attach at once, but answers it a second later."""

    late: ClassVar[StepId] = Attach.of("w-2")

    def _take(self, send: Send) -> None:
        super()._take(send)
        if send.key.step == self.late and self._seen[str(send.key)] == 1:
            answered = self.state
            self.state = replace(answered, attempts={**answered.attempts, self.late: {"": Attempt(sent_s=self.now_s)}})
            task = answered.attempts[self.late][""].task
            self.at(self.now_s + 1.0, lambda: self._answer(send, task))

    def _answer(self, send: Send, task: str | None) -> None:
        self.state = self.state.answered(send.key, self.now_s, task=task, error="")


def test_going_back_does_not_await_the_vgpus_that_were_to_come() -> None:
    """One attach fails while another is still out. Its answer is about vGPUs that nothing asks for any more."""

    def refuse(send: Send, nth: int) -> tuple[str, bool] | None:
        return ("its datastore is full", False) if send.key.step == Attach.of("w-1") else None

    some = fleet(*(worker(name, profile="v100-8q-8GB") for name in ("w-1", "w-2")))
    wish = provision_wish(some, CATALOGUE, Provisioning(max_unavailable=2))
    world = LateAnswer(some, Goal(wish=wish, former=former_wish(wish)), refuse=refuse)
    assert world.run().finished
    assert ends(world) == {"esx-1": "went back"}
    assert world.fleet.worker("w-2").vgpus == (QUARTER,)
    first, again = [when for when, key in world.sent if key == "Attach/w-2/"]
    assert again - first < Attach.effect_s / 4
    assert out(world) == set()

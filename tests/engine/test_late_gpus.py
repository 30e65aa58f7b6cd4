"""The scenario `late-gpus` in virtual time: a switch waits for each worker's device plugin, and not for ever."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tests.support.rehearsal import Rehearsal
from vgpuctl.model.fleet import Fleet
from vgpuctl.planning.steps.returning import missing_signs
from vgpuctl.planning.wishes import Provisioning
from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.kube.objects import at, is_true
from vgpuctl.sim.scenarios import EXAMPLES
from vgpuctl.sim.scenarios.scenario import read_scenario

DAY = {f"worker-{n}" for n in range(1, 5)}
NO_GPU = "its node offers no nvidia.com/gpu yet"
#: A step of a worker that is coming back may last so long.
DEADLINE_S = 900.0
NEVER_BACK = {"esx-2": f"worker-9 did not come back within 900 s: {NO_GPU}"}


@dataclass
class Story:
    """`back_s`: when each worker was truly back, from the beginning of the last switch. `missing`: what it lacked."""

    rehearsal: Rehearsal
    back_s: dict[str, float] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)
    began_s: float = 0.0

    def look(self, fleet: Fleet) -> None:
        now_s = self.rehearsal.world.clock.now_s
        for name, worker in fleet.workers.items():
            if lack := missing_signs(worker):
                self.missing.setdefault(name, []).append(lack)
            elif name not in self.back_s:
                self.back_s[name] = now_s - self.began_s
                self.check(name)

    def check(self, name: str) -> None:
        """What the product takes for back is what the simulated world itself says."""
        store = self.rehearsal.world.kubernetes.store
        node = store.get("nodes", "", name)
        plugins = [pod for pod in store.where("pods", "spec.nodeName", name) if "device-plugin" in str(pod["metadata"])]
        assert node is not None
        assert at(node, "status.allocatable")["nvidia.com/gpu"] == "1"
        assert [is_true(plugin, "Ready") for plugin in plugins] == [True]

    def switch(self, shift: str) -> dict[str, str]:
        """Return why each host went back that did."""
        self.back_s, self.missing, self.began_s = {}, {}, self.rehearsal.world.clock.now_s
        decision = self.rehearsal.switch(shift)
        assert decision.finished
        return {host: str(cause) for host, cause in decision.state.going_back.items()}


@pytest.fixture
def story() -> Story:
    # Its nights are short, and what kubelets leave out after a short sleep is another subject.
    durations = Durations(report_s=0.0)
    rehearsal = Rehearsal.of(read_scenario(EXAMPLES["late-gpus"], durations), durations)
    assert rehearsal.provision(Provisioning()).finished
    assert rehearsal.label().finished
    told = Story(rehearsal)
    rehearsal.watch = told.look
    return told


def test_a_first_start_waits_for_the_plugin_for_minutes_and_at_last_its_host_goes_back(story: Story) -> None:
    assert story.switch("day") == NEVER_BACK
    assert story.rehearsal.awake() == DAY
    usual = [seconds for name, seconds in story.back_s.items() if name != "worker-3"]
    assert usual and all(20 < seconds < 30 for seconds in usual)
    assert 180 < story.back_s["worker-3"] < 190
    assert story.missing["worker-9"][-1] == "its VM is not on"
    assert NO_GPU in story.missing["worker-9"]
    took_s = story.rehearsal.world.clock.now_s - story.began_s
    assert DEADLINE_S < took_s < DEADLINE_S + 30
    assert story.rehearsal.broken == []


def test_a_resume_waits_for_the_plugin_although_the_old_number_stays(story: Story) -> None:
    story.switch("day")
    story.rehearsal.wait(60)
    assert story.switch("night") == {}
    assert story.rehearsal.awake() == {"worker-5", "worker-10"}
    assert story.switch("day") == NEVER_BACK
    assert story.rehearsal.awake() == {*DAY, "worker-10"}
    for name in DAY:
        assert not any(NO_GPU in lack for lack in story.missing[name])
        assert "is not Ready" in story.missing[name][-1]
        assert story.missing[name][-1].startswith("its device plugin gpu-operator/nvidia-device-plugin-daemonset-")
    assert all(20 < story.back_s[name] < 30 for name in DAY - {"worker-3"})
    assert 180 < story.back_s["worker-3"] < 190
    assert story.rehearsal.broken == []


def test_a_daemon_set_that_a_person_deletes_holds_a_switch_up(story: Story) -> None:
    path, kubectl = "/apis/apps/v1/namespaces/gpu-operator/daemonsets", story.rehearsal.kubectl
    (manifest,) = kubectl("GET", path)["items"]
    metadata = {key: manifest["metadata"][key] for key in ("name", "labels")}

    def deleted() -> None:
        kubectl("DELETE", f"{path}/{metadata['name']}")

    def created_again() -> None:
        kubectl("POST", path, {"metadata": metadata, "spec": manifest["spec"]})

    story.rehearsal.world.clock.after(10, deleted)
    story.rehearsal.world.clock.after(300, created_again)
    assert story.switch("day") == NEVER_BACK
    assert all(300 < story.back_s[name] < 310 for name in DAY)
    assert story.rehearsal.awake() == DAY

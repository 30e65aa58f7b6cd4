"""An estate where a night needs every right: it scales, deletes pods at the deadline, and marks Machines."""

from __future__ import annotations

from pathlib import Path

import yaml

from vgpuctl.sim.inventory import Workload
from vgpuctl.sim.kube.controllers.initial_objects import deployment
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate

#: Everything at once: pods that a budget never lets go, a workload that sleeps at night, and Machines.
_SCENARIO = {
    "version": 1,
    "hosts": [{"name": "esx-1", "cards": ["V100-16"]}],
    "profiles": {"v100-4q-4GB": "grid_v100-4q", "v100-16q-16GB": "grid_v100-16q"},
    "workers": [
        {"name": "worker-[1-4]", "profile": "v100-4q-4GB", "vgpus": "grid_v100-4q", "power": True},
        {"name": "worker-5", "profile": "v100-16q-16GB", "vgpus": "grid_v100-16q"},
    ],
    "others": [{"name": "infra-1", "power": True}],
    "shifts": {"day": "v100-4q-4GB", "night": "v100-16q-16GB"},
    "workloads": [
        {"name": "notebooks", "replicas": 4, "profile": "v100-4q-4GB", "budget": {"min-available": 4}},
        {"name": "gateway", "replicas": 3},
    ],
    "cluster-api": True,
}


def everything_at_once(folder: Path) -> str:
    """Return the scenario's file, which is written into the folder."""
    path = folder / "scenario.yaml"
    path.write_text(yaml.safe_dump(_SCENARIO))
    return str(path)


def ask_for_everything(estate: Estate) -> None:
    """Let the timetable scale two workloads and delete pods after a second."""
    path = estate.folder / "schedules" / "day-night.yaml"
    timetable = yaml.safe_load(path.read_text())
    timetable["shifts"]["night"]["scale"] = ["default/deployment/gateway", "default/statefulset/store"]
    timetable |= {"on_stuck": "force", "drain": {"timeout": "1s"}}
    path.write_text(yaml.safe_dump(timetable))
    estate.within(_create_a_stateful_set)


def _create_a_stateful_set(world: World) -> None:
    made = deployment(Workload(name="store", replicas=1))
    world.kubernetes.context.create("statefulsets", made | {"kind": "StatefulSet"})

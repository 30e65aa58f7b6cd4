"""Two datacenters with clusters, datastores and VMs of the same names, through real processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.support.lab import Lab
from vgpuctl.sim.scenarios import EXAMPLES

NORTH, SOUTH = ({f"gpu-{n}" for n in numbers} for numbers in (range(1, 5), range(6, 10)))


def awake(lab: Lab) -> set[str]:
    return {each["name"] for each in lab.json("vgpuctl", "status")["workers"] if each["power"] == "poweredOn"}


def test_a_day_and_a_night_where_names_are_there_twice(make_lab: Callable[..., Lab]) -> None:
    """The datastore of dc-1 has room for its four sleepers, and the one of the same name in dc-2 has room for two."""
    lab = make_lab("--instant", "--scenario", "several-datacenters")
    lab.vgpuctl("provision", "--yes").ok()
    lab.vgpuctl("switch", "day", "--yes").ok()
    assert awake(lab) == NORTH | SOUTH
    nodes = {each["name"]: each["node"]["name"] for each in lab.json("vgpuctl", "status")["workers"] if each["node"]}
    assert (nodes["gpu-1"], nodes["gpu-6"], nodes["gpu-10"]) == ("north-1", "south-1", "south-5")
    lab.vgpuctl("switch", "night", "--yes").ok()
    assert awake(lab) == {"gpu-5", "gpu-10"}
    profiles = lab.folder / "profiles.yaml"
    text = profiles.read_text()
    by_name = "workers:\n  gpu-[1-4]: v100-4q-4GB\n  gpu-[6-9]: v100-4q-4GB\n"
    profiles.write_text(f"{text[: text.index('workers:')]}{by_name}  gpu-5: v100-16q-16GB\n  gpu-10: v100-16q-16GB\n")
    refused = lab.vgpuctl("switch", "day", "--yes")
    assert "several VMs of vCenter have the name gpu-1" in refused.out + refused.err
    assert awake(lab) & (NORTH | SOUTH | {"gpu-5", "gpu-10"}) == {"gpu-5", "gpu-10"}


def test_the_datastore_of_one_datacenter_refuses_no_host_of_the_other(
    make_lab: Callable[..., Lab], tmp_path: Path
) -> None:
    """By day, with 1 GB less than the two sleepers on `local` of dc-2 need."""
    text = EXAMPLES["several-datacenters"].read_text().replace("dc-2/local: 64GiB", "dc-2/local: 63GiB")
    text = text.replace("profile: v100-4q-4GB,", "profile: v100-4q-4GB, vgpus: grid_v100-4q, power: on,")
    path = tmp_path / "estate.yaml"
    path.write_text(text.replace("profile: v100-16q-16GB,", "profile: v100-16q-16GB, vgpus: grid_v100-16q,"))
    lab = make_lab("--instant", "--scenario", str(path))
    (refusal,) = json.loads(lab.vgpuctl("switch", "night", "--dry-run", "-o", "json").out)["refusals"]
    assert (refusal["host"], refusal["code"]) == ("esx-b", "VG304")
    assert "to suspend gpu-6 gpu-7 writes 64 GB, and the datastore local (datastore-" in refusal["message"]

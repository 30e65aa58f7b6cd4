"""Two datacenters with clusters, datastores and VMs of the same names, through real processes."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.lab import Lab

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

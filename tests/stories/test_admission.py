"""HA admission control, through real processes: what cannot start at night is refused in words, and costs no call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.depth import only_long
from tests.support.lab import Lab
from vgpuctl.sim.scenarios import EXAMPLES

Make = Callable[..., Lab]


def awake(lab: Lab) -> set[str]:
    return {each["name"] for each in lab.json("vgpuctl", "status")["workers"] if each["power"] == "poweredOn"}


def test_one_host_is_refused_and_the_others_proceed(make_lab: Make, tmp_path: Path) -> None:
    """The scenario, by day."""
    text = EXAMPLES["no-failover-at-night"].read_text()
    text = text.replace("profile: v100-4q-4GB,", "profile: v100-4q-4GB, vgpus: grid_v100-4q, power: on,")
    text = text.replace("profile: v100-16q-16GB,", "profile: v100-16q-16GB, vgpus: grid_v100-16q,")
    path = tmp_path / "estate.yaml"
    path.write_text(text)
    lab = make_lab("--instant", "--scenario", str(path))
    ran = lab.vgpuctl("switch", "night", "--yes")
    said = ran.out + ran.err
    assert ran.code == 1, said
    assert "night cannot begin on esx-2: HA admission control of gpu forbids to start worker-10." in said
    assert awake(lab) == {"worker-5", "worker-15", *(f"worker-{n}" for n in range(6, 10))}


EVERYWHERE = """\
version: 1
hosts:
  - {name: "esx-[1-2]", cards: [V100-16], memory: 512GiB}
profiles: {small: grid_v100-4q, large: grid_v100-16q}
workers:
  - {name: "day-[1-8]", host: "esx-[1-2]", profile: small, memory: 64GiB, power: on, vgpus: grid_v100-4q}
  - {name: "night-[1-2]", host: "esx-[1-2]", profile: large, memory: 480GiB, vgpus: grid_v100-16q}
shifts: {day: small, night: large}
"""
HALF = "memory-percent: 50"


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (HALF, "It keeps 50 % of its memory free"),
        only_long("level: 1", "It keeps room for the failure of 1 host free"),
        only_long("hosts: [esx-1, esx-2]", "HA keeps esx-2 free as a failover host of gpu"),
    ],
)
def test_where_every_host_is_refused_nothing_is_written(make_lab: Make, tmp_path: Path, policy: str, why: str) -> None:
    """Admission control was switched on when the day workers ran already."""
    path = tmp_path / "estate.yaml"
    path.write_text(f"{EVERYWHERE}ha: {{{policy}}}\n")
    lab = make_lab("--instant", "--scenario", str(path))
    lab.calls()
    ran = lab.vgpuctl("switch", "night", "--yes")
    assert ran.code == 3, ran.out + ran.err
    assert why in ran.err
    assert "Nothing was changed." in ran.err
    calls = lab.calls()
    assert not {name for name in calls["vcenter"] if name.endswith("_Task")}
    assert not {name for name in calls["kubernetes"] if name.startswith(("PATCH nodes", "POST pods"))}
    assert awake(lab) == {f"day-{n}" for n in range(1, 9)}


def test_to_foresee_it_costs_no_call(make_lab: Make, tmp_path: Path) -> None:
    calls = []
    path = tmp_path / "estate.yaml"
    for text in (f"{EVERYWHERE}ha: {{{HALF}}}\n", EVERYWHERE):
        path.write_text(text)
        lab = make_lab("--instant", "--scenario", str(path))
        lab.calls()
        lab.vgpuctl("switch", "night", "--dry-run")
        calls.append(lab.calls()["vcenter"])
    assert calls[0] == calls[1]

"""A vGPU type whose name says no size: the file tells it, or else a host does, asked once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.lab import Lab

ODD = "grid_v100-special"
ESTATE = f"""\
version: 1
hosts:
  - {{name: "esx-[1-3]", cards: [{{model: V100-16, also: {{{ODD}: grid_v100-8q}}}}]}}
profiles:
  odd: {ODD}
  whole: grid_v100-16q
workers:
  - {{name: "worker-[1-2]", profile: odd, vgpus: {ODD}, power: on}}
  - {{name: worker-3, profile: whole, vgpus: grid_v100-16q}}
shifts:
  day: odd
  night: whole
"""


@pytest.fixture
def lab(make_lab: Callable[..., Lab], tmp_path: Path) -> Lab:
    scenario = tmp_path / "odd.yaml"
    scenario.write_text(ESTATE)
    return make_lab("--instant", "--scenario", str(scenario))


def with_profile(lab: Lab, words: str) -> None:
    profiles = lab.folder / "profiles.yaml"
    text = profiles.read_text()
    assert f"vgpu: {ODD}" in text
    profiles.write_text(text.replace(f"  odd:\n    vgpu: {ODD}", f"  odd: {{vgpu: {ODD}, {words}}}"))


def used(lab: Lab) -> tuple[int, int]:
    """MiB in use on the first card, and how often a host was asked for types."""
    lab.calls()
    (card,) = lab.json("vgpuctl", "status")["hosts"][0]["cards"]
    return card["usedMiB"], lab.calls()["vcenter"].get("RetrieveVgpuProfileInfo", 0)


def test_a_host_tells_the_size_and_is_asked_once(lab: Lab) -> None:
    assert used(lab) == (2 * 8192, 1)
    lab.vgpuctl("label-nodes").ok()
    labels = lab.nodes()["worker-1"]["metadata"]["labels"]
    assert (labels["vgpuctl.io/frame-mib"], labels["vgpu.type"]) == ("8192", "odd")
    lab.vgpuctl("switch", "night", "--yes").ok()
    assert lab.awake() == {"worker-3"}
    lab.vgpuctl("switch", "day", "--yes").ok()
    assert lab.awake() == {"worker-1", "worker-2"}, "two of 8 GB go on the card side by side"
    assert lab.vgpuctl("profiles", "check").ok().out.startswith("No problems in ")


def test_the_files_word_counts_and_no_host_is_asked(lab: Lab) -> None:
    with_profile(lab, "frame: 4GB, class: Q")
    assert used(lab) == (2 * 4096, 0)


def test_a_check_asks_the_host_all_the_same_and_tells_where_they_contradict(lab: Lab) -> None:
    with_profile(lab, "frame: 4, class: C")
    ran = lab.vgpuctl("profiles", "check", "-o", "json").ok()
    found = [each["message"] for each in json.loads(ran.out)["findings"] if each["kind"] == "contradicts-host"]
    assert found == [
        f"the file says 4 GB of {ODD}, its host 8 GB; the file is obeyed",
        f"the file says class C of {ODD}, its host class Q; the file is obeyed",
    ]
    with_profile_right = lab.folder / "profiles.yaml"
    with_profile_right.write_text(with_profile_right.read_text().replace("frame: 4, class: C", "frame: 8, class: Q"))
    assert lab.vgpuctl("profiles", "check").ok().out.startswith("No problems in ")


def test_an_estate_whose_names_say_it_all_is_not_asked(by_day: Lab) -> None:
    by_day.status()
    assert "RetrieveVgpuProfileInfo" not in by_day.calls()["vcenter"]

"""What a look costs: the same calls for six VMs and for a thousand, pages aside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.lab import Lab

ESTATE = """\
version: 1
hosts:
  - {{name: esx-1, cards: [V100-16]}}
profiles:
  v100-4q-4GB: grid_v100-4q
workers:
  - {{name: "worker-[1-4]", profile: v100-4q-4GB, vgpus: grid_v100-4q, power: on}}
others:
  - {{name: infra-1, power: on}}
  - {{name: "vm-[1-{others}]", node: false}}
"""
PAGES = ("WaitForUpdatesEx", "ContinueRetrievePropertiesEx")
CHOOSERS = {
    "names": "workers:\n  worker-[1-4]: v100-4q-4GB\n",
    "everything": (
        "workers:\n  - {profile: v100-4q-4GB, names: 'worker-*', folder: /*/vm, cluster: '*', "
        "nodes: {kubernetes.io/os: linux}}\n"
    ),
}


@pytest.mark.parametrize("words", [("status", "-o", "json"), ("provision", "--dry-run")])
@pytest.mark.parametrize("chooser", CHOOSERS)
def test_a_look_takes_a_constant_number_of_calls(
    make_lab: Callable[..., Lab], tmp_path: Path, words: tuple[str, ...], chooser: str
) -> None:
    calls = []
    for others in (1, 995):
        scenario = tmp_path / f"{others}.yaml"
        scenario.write_text(ESTATE.format(others=others))
        lab = make_lab("--scenario", str(scenario))
        profiles = lab.folder / "profiles.yaml"
        text = profiles.read_text()
        profiles.write_text(text[: text.index("workers:")] + CHOOSERS[chooser])
        assert lab.vgpuctl("status", "-o", "name").ok().out.split() == [f"worker/worker-{n}" for n in range(1, 5)]
        lab.calls()
        lab.vgpuctl(*words).ok()
        calls.append({server: sum_of(counted) for server, counted in lab.calls().items()})
    assert calls[0] == calls[1]
    assert calls[0]["vcenter"] <= 12
    assert calls[0]["kubernetes"] <= 12


def sum_of(counted: dict[str, int]) -> int:
    return sum(number for name, number in counted.items() if name not in PAGES)

"""Pods that ask to sleep with their worker, and may."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.fleets import day_and_night, night_wish, pod, with_node
from vgpuctl.kube.views import SILENT
from vgpuctl.kube.views import pod as pod_view
from vgpuctl.model.conduct import Asleep, Conduct
from vgpuctl.model.pods import Freeze
from vgpuctl.operations import look_ahead
from vgpuctl.planning.pods.freezing import LINES

ASKS = {"vgpuctl.io/on-switch": "freeze"}


def tolerating(*tolerations: dict[str, Any], annotations: dict[str, str] | None = None) -> Freeze:
    asks = ASKS if annotations is None else annotations
    meta = {"namespace": "n", "name": "p", "uid": "u", "annotations": asks}
    return pod_view({"metadata": meta, "spec": {"tolerations": list(tolerations)}}).freeze


def exists(key: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **more}


BOTH = tuple(exists(key) for key in SILENT)


@pytest.mark.parametrize(
    ("tolerations", "found"),
    [
        (BOTH, Freeze.READY),
        (({"operator": "Exists"},), Freeze.READY),
        (BOTH[:1], Freeze.UNPREPARED),
        ((), Freeze.UNPREPARED),
        (tuple(exists(key, tolerationSeconds=300) for key in SILENT), Freeze.UNPREPARED),
        ((exists(SILENT[0], tolerationSeconds=86400), *BOTH), Freeze.UNPREPARED),
        ((*BOTH, exists(SILENT[0], tolerationSeconds=86400)), Freeze.READY),
    ],
)
def test_only_who_tolerates_silence_without_a_limit_may_be_frozen(tolerations: Any, found: Freeze) -> None:
    assert tolerating(*tolerations) is found
    assert tolerating(*tolerations, annotations={}) is Freeze.NO


def preview(freeze: Freeze, conduct: Conduct | None = None, **more: Any) -> tuple[set[str], list[str]]:
    """Who is drained of anything, and what is said."""
    some, _ = day_and_night()
    bert = pod("bert", "worker-1", freeze=freeze, **more)
    found = look_ahead(with_node(some, "worker-1", pods=(bert,)), night_wish(some, conduct=conduct))
    return {step.subject for step in found.plan if step.id.kind == "Drain"}, [r.message for r in found.remarks]


def test_who_is_frozen_stays_and_its_hazards_are_said() -> None:
    drained, said = preview(Freeze.READY)
    assert "worker-1" not in drained
    assert "sleeps with its VM (experimental)" in said[0]
    assert "NCCL" in said[0]


def test_who_asks_without_tolerating_is_evicted_and_told_which_lines_to_add() -> None:
    drained, said = preview(Freeze.UNPREPARED)
    assert "worker-1" in drained
    assert LINES in said[0]


def test_nobody_is_frozen_in_a_vm_that_is_shut_down_nor_while_it_ends() -> None:
    assert "worker-1" in preview(Freeze.READY, Conduct(asleep=Asleep.OFF))[0]
    assert "worker-1" in preview(Freeze.READY, terminating=True)[0]
    assert "worker-1" in preview(Freeze.READY, phase="Succeeded")[0]

"""That the laws of labels and waves can fail: a planner with one thing wrong breaks one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support import provision_laws as laws
from tests.support.planned import Case, lawful
from tests.support.provisions import fleets_and_provisions
from vgpuctl.model.fleet import Fleet, Node, Worker
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.record import FRAME, HOST, VGPU
from vgpuctl.planning import planner, waves
from vgpuctl.planning.labels import Labels, labels_of, taken_off
from vgpuctl.planning.steps import Cordon, ShutDown, Suspend
from vgpuctl.planning.steps import labels as label_steps

Patch = pytest.MonkeyPatch

TRIED = settings(
    phases=[Phase.generate],
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def told(change: Callable[[dict[str, str | None], Worker], Mapping[str, str | None]]) -> Callable[[Patch], None]:
    def mutant(patch: Patch) -> None:
        def wrong(fleet: Fleet, catalogue: Catalogue, worker: Worker, vgpus: tuple[str, ...]) -> Labels:
            return change(dict(labels_of(fleet, catalogue, worker, vgpus)), worker)

        patch.setattr(planner, "labels_of", wrong)

    return mutant


def written(change: Callable[[Node, tuple[tuple[str, str | None], ...]], Any]) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(label_steps, "wrong", change)


def pruned_unasked(patch: Patch) -> None:
    sound = planner.plan
    patch.setattr(laws, "plan", lambda fleet, wish: sound(fleet, replace(wish, prune=True)))


def pruned_too_much(patch: Patch) -> None:
    patch.setattr(planner, "taken_off", lambda catalogue: {**taken_off(catalogue), "theirs": None})


LABELS: Mapping[str, Callable[[Patch], None]] = {
    "the profile that is wanted, not that which is carried": told(
        lambda have, some: {**have, "vgpu.type": some.profile}
    ),
    "the worker's name for its host": told(lambda have, some: {**have, HOST: some.name}),
    "no frame": told(lambda have, _: {**have, FRAME: None}),
    "the frame of all vGPUs together": told(
        lambda have, some: {**have, FRAME: str(int(have[FRAME] or 0) * len(some.vgpus)) if have[FRAME] else None}
    ),
    "every vGPU, the same ones too": told(lambda have, some: {**have, VGPU: ".".join(some.vgpus) or None}),
    "others' labels as well": told(lambda have, _: {**have, "theirs": "ours"}),
    "stale ones stay": told(lambda have, _: {key: value for key, value in have.items() if value is not None}),
    "those that are right are written again": written(lambda _node, labels: dict(labels)),
    "those that are wrong stay": written(
        lambda node, labels: {key: value for key, value in labels if key not in node.labels and value}
    ),
    "nodes of nobody are pruned unasked": pruned_unasked,
    "others' labels are pruned": pruned_too_much,
    "nothing is pruned": lambda patch: patch.setattr(planner, "_pruned", lambda *_: {}),
}


def no_lanes(patch: Patch) -> None:
    patch.setattr(planner, "in_waves", lambda *_: None)


def a_lane_for_each_unit(patch: Patch) -> None:
    sound = waves.in_waves

    def in_waves(found: list[waves.Unit], *rest: Any) -> None:
        sound([waves.Unit(unit.workers[:1], unit.begun) for unit in found], *rest)

    patch.setattr(planner, "in_waves", in_waves)


def one_lane_more(patch: Patch) -> None:
    sound = waves.in_waves
    patch.setattr(planner, "in_waves", lambda found, ladders, needs, most: sound(found, ladders, needs, most + 1))


def who_began_waits_again(patch: Patch) -> None:
    sound = waves.in_waves

    def in_waves(found: list[waves.Unit], *rest: Any) -> None:
        sound([waves.Unit(unit.workers, begun=frozenset()) for unit in found[::-1]], *rest)

    patch.setattr(planner, "in_waves", in_waves)


def swaps_go_apart(patch: Patch) -> None:
    patch.setattr(waves, "_bound", lambda *_: iter(()))


def starts_of_several_types_go_apart(patch: Patch) -> None:
    patch.setattr(waves, "alike", lambda _: True)


def who_returns_is_not_counted(patch: Patch) -> None:
    kinds = (Cordon, Suspend, ShutDown)
    patch.setattr(waves, "goes_out", lambda rungs: any(isinstance(step, kinds) for step in rungs))


#: Those that only rare fleets show are looked for in the long run.
RARE = (a_lane_for_each_unit, starts_of_several_types_go_apart)
WAVES = (
    no_lanes,
    one_lane_more,
    who_began_waits_again,
    swaps_go_apart,
    who_returns_is_not_counted,
    *(pytest.param(mutant, marks=pytest.mark.long) for mutant in RARE),
)


def broken(law: Callable[..., None], *given_of: Any, tries: int = 1500) -> bool:
    """Is this law broken by any of so many fleets?"""

    @settings(TRIED, max_examples=tries)
    @given(drawn=st.tuples(*given_of))
    def tried(drawn: tuple[Any, ...]) -> None:
        law(*drawn)

    try:
        tried()
    except (AssertionError, LookupError, BaseExceptionGroup):
        return True
    return False


@pytest.mark.parametrize("mutant", LABELS.values(), ids=LABELS)
def test_each_mutant_of_labels_is_caught(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    fleets = laws.labelled_fleets(), st.booleans()
    assert broken(laws.labels_come_true_once, *fleets) or broken(laws.each_node_is_patched_once, *fleets)


@pytest.mark.parametrize("mutant", WAVES, ids=lambda mutant: mutant.__name__)
def test_each_mutant_of_waves_is_caught(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    assert broken(begins_lawfully_and_ends_well, fleets_and_provisions(), st.integers(0, 1 << 20))


def begins_lawfully_and_ends_well(case: Case, seed: int) -> None:
    fleet, wish, _ = lawful(case)
    laws.ends_well(fleet, wish, seed)


def test_the_sound_planner_breaks_none() -> None:
    assert not broken(laws.labels_come_true_once, laws.labelled_fleets(), st.booleans())

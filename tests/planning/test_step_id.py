"""What tells steps apart."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable

import pytest

from tests.support.paths import ROOT
from vgpuctl.model.step_id import StepId
from vgpuctl.planning.steps import KINDS, Drain, kind_named


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda step: pickle.loads(pickle.dumps(step))])
def test_a_copy_is_the_same_step_and_knows_its_parts(copied: Callable[[StepId], StepId]) -> None:
    key = StepId("ScaleDown", "default/deployment/notebooks")
    again = copied(key)
    assert (again, again.kind, again.subject) == (key, key.kind, key.subject)


def test_it_is_read_from_its_text_also_where_the_subject_has_slashes() -> None:
    read = StepId.read("ScaleDown/default/deployment/notebooks")
    assert (read.kind, read.subject) == ("ScaleDown", "default/deployment/notebooks")
    assert StepId.read("Drain/worker-1") == Drain.of("worker-1") == Drain("worker-1").id


def test_each_kind_is_found_by_its_name_and_an_unknown_one_has_no_words() -> None:
    assert {kind_named(kind.__name__) for kind in KINDS} == set(KINDS)
    unknown = kind_named("OfAnotherRelease")
    assert (unknown.finished, unknown.bar, unknown.lasts) == ("", "", False)


def test_no_module_writes_the_name_of_a_step_by_hand() -> None:
    by_hand = re.compile(rf"""["'](?:{"|".join(kind.__name__ for kind in KINDS)})/""")
    assert by_hand.search("x = f'PowerOn/{worker}'")
    modules = [path for path in (ROOT / "vgpuctl").rglob("*.py") if by_hand.search(path.read_text())]
    assert not modules

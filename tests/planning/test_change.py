"""A changed picture is what dataclasses.replace would have made of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.fleets import fleet, node, worker
from vgpuctl.basics.change import changed
from vgpuctl.model.fleet import Power


def test_it_is_what_replace_would_make_and_the_old_one_stays() -> None:
    old = worker("worker-1")
    assert changed(old, power=Power.OFF, node=None) == replace(old, power=Power.OFF, node=None)
    assert old == worker("worker-1")
    assert changed(node("worker-1"), ready=False) == replace(node("worker-1"), ready=False)


def test_what_was_reckoned_of_the_old_picture_is_not_told_of_the_new_one() -> None:
    old = fleet(worker("worker-1"))
    assert old.on_host("esx-1")
    moved = changed(old, workers={"worker-1": worker("worker-1", host="esx-2")})
    assert (moved.on_host("esx-1"), [each.name for each in moved.on_host("esx-2")]) == ((), ["worker-1"])


def test_what_a_picture_does_not_have_cannot_be_changed() -> None:
    with pytest.raises(TypeError, match="Worker has no colour"):
        changed(worker("worker-1"), colour="red")

"""A switch over time: in columns of text, as a picture, and in the words below."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.past import BEGAN, night, past_step
from vgpuctl.cli.showing.gantt import gantt
from vgpuctl.cli.showing.gantt_svg import svg
from vgpuctl.cli.showing.past import headline, remarks
from vgpuctl.model.journal import CUT_SHORT, RUNNING, Entry, HostReport

LATER = BEGAN + timedelta(minutes=3)
PICTURE = """\
          0 s             30 s             1 min           1 min 30 s      2 min
worker-1  ▐drain▌▐──────suspend───────▌
worker-3  ▐──────drain───────▌▐──────suspend───────▌
worker-5                                            ▐─────resume──────▌▐─ready─▌
"""


def drawn(entry: Entry, width: int = 80) -> str:
    return "".join(f"{line.plain}\n" for line in gantt(entry, width))


def test_a_line_a_worker_under_a_line_of_times() -> None:
    assert drawn(night()) == PICTURE


@pytest.mark.parametrize("width", [50, 72, 80, 132])
def test_no_line_is_wider_than_the_paper(width: int) -> None:
    far = [past_step(f"Drain/{'w' * 63}", 3.0, 4000.0), past_step("Suspend/worker-7", 4000.0, 90000.0)]
    for entry in (night(), night(seconds=90000.0, steps=tuple(far)), night(seconds=0.0, steps=())):
        assert all(line.cell_len <= width for line in gantt(entry, width))


def test_hosts_are_named_where_there_are_several() -> None:
    entry = night(steps=(*night().steps, past_step("Drain/worker-9", 0.0, 60.0, host="esx-2")))
    assert "esx-1\n" in drawn(entry)
    assert "esx-2\nworker-9" in drawn(entry)
    assert "esx-1\n" not in drawn(night())


def test_an_end_that_nobody_saw_is_left_open_until_the_workers_next_step() -> None:
    steps = (past_step("Drain/worker-1", 0.0, None), past_step("Suspend/worker-2", 0.0, None))
    back = past_step("PowerOn/worker-1", 64.0, 128.0)
    lines = drawn(night(steps=(*steps, back))).splitlines()
    assert lines[1].startswith("worker-1  ▐─")
    assert "…▐" in lines[1]
    assert lines[2].endswith("…")
    assert len(lines[2]) == 80


def test_what_was_given_up_is_crossed_out() -> None:
    assert "─drain─" in (shown := drawn(night(steps=(past_step("Drain/worker-1", 0.0, 60.0, given_up=True),))))
    assert shown.endswith("─╳\n")


def test_who_was_only_marked_is_a_dot() -> None:
    entry = night(steps=(*night().steps, past_step("MarkAsleep/worker-7", 64.0, 64.1)))
    assert [line.split() for line in drawn(entry).splitlines() if "worker-7" in line] == [["worker-7", "·"]]


def test_the_words_say_what_decided_and_what_held_it_up() -> None:
    assert remarks(night()) == [
        "Longest way: worker-3 drain → suspend → worker-5 resume → ready (2 min 8 s of 2 min 8 s).",
        "Budget gateway held worker-3's drain for 24 s.",
    ]
    assert headline(night(), LATER).startswith("night · ")
    assert headline(night(), LATER).endswith(":00:03 · 2 min 8 s · done")


def test_the_words_say_what_did_not_end_well() -> None:
    hosts = tuple(HostReport(host=f"esx-{n}", end="went back", why="the drain took too long.") for n in (1, 2))
    told = remarks(night(hosts=hosts, outcome="went back", left_out=3))
    assert told[2:] == [
        "esx-1 esx-2 went back: the drain took too long.",
        "3 short steps did not fit into the journal.",
    ]
    assert headline(night(outcome=RUNNING), LATER).endswith("3 min so far · running")
    assert headline(night(outcome=CUT_SHORT), LATER).endswith("at least 2 min 8 s · cut short")


def test_a_return_that_took_its_time_is_told_with_the_reason() -> None:
    slow = replace(night().steps[-1], held_by="its node is not Ready", held_s=14.0)
    told = remarks(night(steps=(*night().steps[:-1], slow)))
    assert "14 s of worker-5's return: its node is not Ready." in told


def test_the_picture_is_xml_of_its_own_whatever_the_names_are() -> None:
    evil = past_step('Drain/</text><script>&"\x1b[2J', 0.0, 60.0, held_by="<b>", held_s=3.0)
    entry = night(steps=(*night().steps, evil))
    text = svg(entry, headline(entry, LATER), remarks(entry))
    root = ET.fromstring(text)
    kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert kinds == {"svg", "title", "style", "rect", "text", "line"}
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme: dark" in text
    assert len(root.findall("{*}rect")) == 1 + len(entry.steps)


def test_the_picture_names_hosts_where_there_are_several_and_needs_no_clever_viewer() -> None:
    steps = tuple(replace(step, host=f"esx-{number % 2 + 1}") for number, step in enumerate(night().steps))
    for entry, named in ((night(), set()), (night(steps=steps), {"esx-1", "esx-2"})):
        text = svg(entry, headline(entry, LATER), remarks(entry))
        assert "var(" not in text
        words = {each.text for each in ET.fromstring(text).iter() if each.tag.endswith("}text")}
        assert {word for word in words if word and word.startswith("esx-")} == named

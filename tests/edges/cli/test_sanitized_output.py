"""Others' words on every way out: no code point leaves that a terminal obeys, or that turns or breaks a line."""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
import typer
import yaml
from rich.console import ConsoleDimensions, Group
from rich.live import Live
from rich.text import Text

from tests.support.fleets import CATALOGUE, day_and_night, fleet, node, pod, worker
from tests.support.past import night, past_step
from vgpuctl.cli import common, completing, documents, lazy, sanitize
from vgpuctl.cli.acting.plans import show_plan
from vgpuctl.cli.acting.progress import Lines, LiveScreen, Quiet
from vgpuctl.cli.options import HistoryOutput, Output
from vgpuctl.cli.safe_console import SafeConsole
from vgpuctl.cli.showing import history
from vgpuctl.cli.showing.estate.live import Lines as EstateLines
from vgpuctl.cli.showing.estate.live import LiveTables
from vgpuctl.cli.showing.estate.views import Documents, WorkerNames
from vgpuctl.cli.showing.findings import show_findings
from vgpuctl.cli.showing.gantt_svg import svg
from vgpuctl.cli.showing.past import headline, remarks
from vgpuctl.engine.reactor import Decision
from vgpuctl.engine.run_state import RunState
from vgpuctl.engine.runner import Progress
from vgpuctl.kube.journal import History
from vgpuctl.model.journal import HostReport
from vgpuctl.model.plan import Plan
from vgpuctl.model.pods import Demand
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.model.wait import Reason, Wait
from vgpuctl.operations import look_ahead
from vgpuctl.planning.selection import Selection
from vgpuctl.planning.steps import Drain, Suspend
from vgpuctl.reporting.causes import StepRefused
from vgpuctl.reporting.profiles_check import Compared, Finding, Severity
from vgpuctl.reporting.situation import Situation, situate

TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
BAD = [
    chr(code)
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) in {"Cc", "Zl", "Zp", "Cs"}
    or unicodedata.bidirectional(chr(code)) in TURNING
    or code in {0x061C, 0x200E, 0x200F}
]
#: As a name, a reason, a question: with a line that would pass for one of ours, and a letter that must stay.
NASTY = f"üw\n20:00:41 forged\nHint: forged{''.join(BAD)}"
#: No operating system hands over halves of characters that are not bytes.
TYPED = NASTY.encode(errors="ignore").decode()
ALLOWED = {"\n", "\t"}
NOW = datetime(2026, 11, 18, 16, 48, tzinfo=UTC)


def test_the_classes_are_whole() -> None:
    assert len(BAD) == 65 + 2048 + 2 + 9 + 3
    assert {ord(each) for each in BAD} <= sanitize.RISKY
    assert not any(chr(code).isalnum() for code in sanitize.RISKY)


def hostile() -> Situation:
    """Names, reasons and labels are all others' words."""
    inside = node(NASTY, unschedulable=True, cordoned_by=NASTY, cordoned_since=NASTY, labels={"vgpu.type": NASTY})
    one = worker(NASTY, host="esx-1", question=NASTY, doubts=(NASTY,), managed_by=NASTY, node=inside)
    waiting = pod(NASTY, phase="Pending", selector={"vgpu.type": "v100-16q-16GB"}, demand=Demand(unplaced=NASTY))
    left_out = Unreadable(kind="node", name=NASTY, why=NASTY)
    some = fleet(one, waiting=(waiting,), missing=(NASTY,), unreadable=(left_out,))
    return situate(some, CATALOGUE, (), Selection(), NOW)


def entry() -> Any:
    steps = (past_step(f"Drain/{NASTY}", 0.0, 9.0, host=NASTY, held_by=f"budget {NASTY}", held_s=8.0, what=NASTY),)
    hosts = (HostReport(host=NASTY, end="failed", why=NASTY),)
    return night(steps=steps, hosts=hosts, seconds=9.0, wish=NASTY, by=NASTY, outcome=NASTY, timetable=NASTY)


def preview() -> Any:
    """The plan of a worker with such a name, whose host is not known."""
    by_day, wish = day_and_night()
    named = replace(by_day.workers["worker-1"], name=NASTY, host=NASTY)
    renamed = replace(by_day, workers={**by_day.workers, NASTY: named})
    return look_ahead(renamed, replace(wish, workers={**wish.workers, NASTY: wish.workers["worker-1"]}))


def found() -> tuple[Compared, tuple[Finding, ...]]:
    finding = Finding(
        severity=Severity.ERROR,
        kind="k",
        what=NASTY,
        hint=NASTY,
        where="profiles.yaml:3",
        workers=(NASTY,),
        details=(NASTY,),
    )
    return Compared(fleet=fleet(), catalogue=CATALOGUE), (finding,)


def going_back() -> Progress:
    """A step whose reason quotes others, a host that goes back for such a reason, and a step that is done."""
    state = RunState(going_back={NASTY: StepRefused(NASTY, NASTY, NASTY)})
    waits = {Drain.of(NASTY): Wait.of(Reason.BUDGET, NASTY, NASTY)}
    decision = Decision(state=state, plan=Plan(), waits=waits)
    return Progress(first=Plan(), decision=decision, fleet=fleet(), done={Suspend.of(NASTY): 41.0}, elapsed_s=1.0)


def on_a_terminal(use: Callable[[SafeConsole], Any]) -> None:
    """What rich writes for itself is taken away: what is left comes out of others' words."""
    out = SafeConsole()
    out._force_terminal, out.size = True, ConsoleDimensions(100_000, 1000)
    out.file = written = io.StringIO()
    use(out)
    print(re.sub(r"\x1b\[(\?25[lh]|2K|1A|[0-9;]*m)|\r", "", written.getvalue()))


def live(out: SafeConsole) -> None:
    with Live(console=out, auto_refresh=False) as screen:
        screen.update(Group(Text(NASTY), NASTY), refresh=True)


def live_tables(out: SafeConsole) -> None:
    with LiveTables(out, wide=False) as view:
        view.show(hostile())


def live_screen(out: SafeConsole) -> None:
    with LiveScreen(out) as screen:
        screen.say(NASTY)
        screen.progress(going_back())


WAYS: dict[str, Callable[[], Any]] = {
    "a text": lambda: SafeConsole().print(NASTY, "[red]"),
    "a styled text": lambda: SafeConsole().print(Text(NASTY, "bold")),
    "a sentence": lambda: SafeConsole().print_text(NASTY),
    "an error": lambda: common.show_error(NASTY, NASTY),
    "a table of status": lambda: EstateLines(SafeConsole(), 100, wide=True).show(hostile()),
    "a plan": lambda: show_plan(SafeConsole(), preview()),
    "findings": lambda: show_findings(SafeConsole(), *found()),
    "a history": lambda: history._list([entry()], HistoryOutput.TABLE),
    "an entry": lambda: history._show([entry()], HistoryOutput.WIDE),
    "an unreadable entry": lambda: history._warn_unreadable(
        History((), (Unreadable(kind="c", name=NASTY, why=NASTY),))
    ),
    "a redrawn screen": lambda: on_a_terminal(live),
    "redrawn tables": lambda: on_a_terminal(live_tables),
    "redrawn progress": lambda: on_a_terminal(live_screen),
    "a quiet listener": lambda: Quiet().say(NASTY),
    "names": lambda: WorkerNames().show(hostile()),
    "json": lambda: common.print_json({NASTY: [NASTY]}),
    "a line of json": lambda: Documents(documents.as_line).show(hostile()),
    "json of status": lambda: Documents(documents.as_json).show(hostile()),
    "yaml of status": lambda: Documents(documents.as_yaml).show(hostile()),
    "yaml of the history": lambda: history._list([entry()], HistoryOutput.YAML),
    "a picture": lambda: print(svg(entry(), headline(entry(), NOW), remarks(entry()))),
    "the option parser": lambda: lazy.build_command(app())(["/dev/null", TYPED], standalone_mode=True),
    "its options": lambda: lazy.build_command(app())(["/dev/null", "--output", TYPED], standalone_mode=True),
    "its paths": lambda: lazy.build_command(app())([TYPED.replace("\0", "")], standalone_mode=True),
}


def app() -> typer.Typer:
    made = typer.Typer(rich_markup_mode=None, add_completion=False)

    @made.command()
    def command(file: Annotated[Path, typer.Argument(exists=True)], output: Output = Output.TABLE) -> None:
        raise AssertionError

    return made


@pytest.mark.parametrize("way", WAYS)
def test_nothing_that_a_terminal_obeys_leaves(way: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        WAYS[way]()
    except SystemExit:
        assert "option" in way or "path" in way
    shown = "".join(capsys.readouterr())
    assert "w" in shown
    assert "ü" in shown
    assert not (set(BAD) - ALLOWED) & set(shown)
    shown.encode("utf-8")


def changes() -> None:
    lines, before = EstateLines(SafeConsole(), 100, wide=False), hostile()
    lines._facts = {}
    lines.show(before)


EVENTS: dict[str, Callable[[], Any]] = {
    "a sentence of a log": lambda: Lines(SafeConsole()).say(NASTY),
    "progress in a log": lambda: Lines(SafeConsole()).progress(going_back()),
    "changes": changes,
}


@pytest.mark.parametrize("way", EVENTS)
def test_one_event_is_one_line_with_its_time(way: str, capsys: pytest.CaptureFixture[str]) -> None:
    EVENTS[way]()
    lines = capsys.readouterr().out.removesuffix("\n").split("\n")
    assert lines
    for line in lines:
        assert not set(BAD) & set(line)
        assert line[2] == line[5] == ":"
        assert not line[9:].startswith("forged")


def test_no_line_of_an_error_passes_for_another_label(capsys: pytest.CaptureFixture[str]) -> None:
    common.show_error("a\nHint: forged\n  b", "c\nd")
    assert capsys.readouterr().err == "Error: a\n  Hint: forged\n    b\nHint: c\n  d\n"
    common.show_error("f cannot be used:\n  line 3: x", None)
    assert capsys.readouterr().err == "Error: f cannot be used:\n  line 3: x\n"


@pytest.mark.parametrize("character", ["ä", "日", "🖥", "ß", "−", "\u00a0", "é", "‑"])
def test_readable_text_stays_as_it_is(character: str, capsys: pytest.CaptureFixture[str]) -> None:
    for way in (documents.as_json, documents.as_line, *([documents.as_yaml] if character < "\uffff" else [])):
        assert character in way({"name": f"a{character}"})
    SafeConsole().print(f"a{character}")
    Lines(SafeConsole()).say(f"a{character}")
    assert capsys.readouterr().out.count(f"a{character}\n") == 2


@pytest.mark.parametrize("plain", [False, True])
def test_documents_are_read_back_as_they_were_made(plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every one of these characters, but for halves of characters, for which no encoding has a place."""
    if plain:
        monkeypatch.delattr(yaml, "CSafeDumper")
    texts = [f"a{each}b" for each in BAD if not 0xD800 <= ord(each) < 0xE000]
    made: dict[str, Any] = {"items": texts, "keys": dict.fromkeys(texts, 1), "number": 1.5, "none": None, "yes": True}
    for text in (documents.as_json(made), documents.as_line(made)):
        assert json.loads(text) == made
    assert yaml.safe_load(documents.as_yaml(made)) == made
    halves = {"items": ["\ud800x", "\udfff"]}
    assert json.loads(documents.as_json(halves)) == yaml.safe_load(documents.as_yaml(halves)) == {"items": ["�x", "�"]}


def test_the_picture_is_xml_whatever_stands_in_it() -> None:
    drawn = svg(entry(), headline(entry(), NOW), remarks(entry()))
    assert ET.fromstring(drawn.encode("utf-8")).tag.endswith("svg")


def test_no_name_that_a_terminal_obeys_is_put_in_by_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    files = SimpleNamespace(timetables=["day", "d\x9bx", "d\u202ey"])
    monkeypatch.setattr(completing, "_files", lambda _: files)
    assert completing.timetables(SimpleNamespace(params={}), "d") == ["day"]  # type: ignore[arg-type]

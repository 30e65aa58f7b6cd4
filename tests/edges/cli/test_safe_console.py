"""What is printed cannot take the terminal over."""

from __future__ import annotations

import pytest

from vgpuctl.cli.safe_console import SafeConsole, fold_line


def test_names_are_neither_markup_nor_commands(capsys: pytest.CaptureFixture[str]) -> None:
    paper = SafeConsole()
    paper.print("[red]vm[/red] \x1b]0;owned\x07 \x9b2J")
    paper.print_labelled("Error:", "[bold]x \x1b[2J")
    shown = capsys.readouterr().out
    assert "[red]vm[/red]" in shown
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)


def test_lines_are_folded_between_words_and_set_in() -> None:
    assert fold_line("  one two three", 9) == "  one two\n    three"
    assert fold_line("short", 9) == "short"
    assert fold_line("a-name-that-is-longer than", 9) == "a-name-that-is-longer\n  than"


def test_what_is_no_terminal_gets_a_line_for_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    SafeConsole().print_text("word " * 60)
    SafeConsole().print_labelled("Hint:", "word " * 60)
    assert capsys.readouterr().out.count("\n") == 2

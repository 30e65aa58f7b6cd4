"""What is printed cannot take the terminal over."""

from __future__ import annotations

import pytest

from vgpuctl.cli.paper import Paper


def test_names_are_neither_markup_nor_commands(capsys: pytest.CaptureFixture[str]) -> None:
    paper = Paper()
    paper.print("[red]vm[/red] \x1b]0;owned\x07 \x9b2J")
    paper.say("Error:", "[bold]x \x1b[2J")
    shown = capsys.readouterr().out
    assert "[red]vm[/red]" in shown
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)

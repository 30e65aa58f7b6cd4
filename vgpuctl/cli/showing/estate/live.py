"""The estate for people: once, as following lines, or redrawn in place. Rich loads here."""

from __future__ import annotations

import os
from datetime import datetime
from types import TracebackType

from rich.console import Group
from rich.live import Live

from vgpuctl.cli.safe_console import SafeConsole
from vgpuctl.cli.showing.estate.changes import Facts, differences, facts
from vgpuctl.cli.showing.estate.tables import ENDLESS, fitted, screen
from vgpuctl.cli.showing.estate.views import View, lasting
from vgpuctl.cli.times import clock
from vgpuctl.reporting.situation import Situation
from vgpuctl.reporting.status_document import Document


def for_people(out: SafeConsole, *, wide: bool, watching: bool) -> View:
    """Return the view for people. In a pipe or a file, lines are not shortened."""
    if watching and out.is_terminal:
        return LiveTables(out, wide=wide)
    return Lines(out, out.width if out.is_terminal or "COLUMNS" in os.environ else ENDLESS, wide=wide)


class Lines(View):
    """Prints the tables once, then lines such as `20:00:41 worker-1 VM on → suspending`."""

    def __init__(self, out: SafeConsole, width: int, *, wide: bool) -> None:
        self._out, self._width, self._wide = out, width, wide
        self._facts: Facts | None = None

    def show(self, situation: Situation) -> None:
        now = facts(situation)
        if self._facts is None:
            self._out.print(*screen(situation, self._width, wide=self._wide), sep="\n")
        for line in differences(self._facts, now) if self._facts is not None else ():
            self._out.print(f"{clock(situation.now)} {line}")
        self._out.file.flush()
        self._facts = now


class LiveTables(View):
    """Redraws the tables when something changed, and at each full minute."""

    def __init__(self, out: SafeConsole, *, wide: bool) -> None:
        self._out, self._wide = out, wide
        self._shown: tuple[Document, datetime, tuple[int, int]] | None = None
        self._live = Live(console=out, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> LiveTables:
        self._live.start()
        return self

    def show(self, situation: Situation) -> None:
        width, height = self._out.size
        showing = lasting(situation), situation.now.replace(second=0, microsecond=0), (width, height)
        if showing == self._shown:
            return
        lines = fitted(situation, (width, height - 1), wide=self._wide)
        for line in lines:
            line.no_wrap, line.overflow = True, "crop"
        self._live.update(Group(*lines), refresh=True)
        self._shown = showing

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        self._live.stop()

"""The ways in which the estate is shown while it is watched: each is told of every look, and says what is new."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import Any

from rich.console import Group
from rich.live import Live

from vgpuctl.cli.estate.changes import Facts, differences, facts
from vgpuctl.cli.estate.document import Document, document
from vgpuctl.cli.estate.layout import one_line
from vgpuctl.cli.estate.tables import ENDLESS, fitted, screen
from vgpuctl.cli.paper import Paper
from vgpuctl.cli.words import clock
from vgpuctl.planning.situation import Situation


def width_of(out: Paper) -> int:
    """A pipe or a file gets lines as long as they are."""
    return out.width if out.is_terminal or "COLUMNS" in os.environ else ENDLESS


class View(AbstractContextManager["View"]):
    """Closed when the watching ends."""

    def show(self, situation: Situation) -> None:
        raise NotImplementedError

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        return None


class Lines(View):
    """The tables once, then `20:00:41 worker-1 VM on → suspending`."""

    def __init__(self, out: Paper, width: int, *, wide: bool) -> None:
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
    """Redrawn in place when something changed, and when a minute begins."""

    def __init__(self, out: Paper, *, wide: bool) -> None:
        self._out, self._wide = out, wide
        self._shown: tuple[Document, datetime, tuple[int, int]] | None = None
        self._live = Live(console=out, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> LiveTables:
        self._live.start()
        return self

    def show(self, situation: Situation) -> None:
        width, height = self._out.size
        showing = _lasting(situation), situation.now.replace(second=0, microsecond=0), (width, height)
        if showing == self._shown:
            return
        lines = fitted(situation, (width, height - 1), wide=self._wide)
        for line in lines:
            line.no_wrap, line.overflow = True, "crop"
        self._live.update(Group(*lines), refresh=True)
        self._shown = showing

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        self._live.stop()


class Documents(View):
    """One document a change."""

    def __init__(self, write: Callable[[Document], str]) -> None:
        self._write = write
        self._shown: Document | None = None

    def show(self, situation: Situation) -> None:
        if (lasting := _lasting(situation)) != self._shown:
            print(self._write(document(situation)), flush=True)
            self._shown = lasting


class WorkerNames(View):
    """All of them, then each that changed."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def show(self, situation: Situation) -> None:
        workers = {worker["name"]: worker for worker in document(situation)["workers"]}
        for name, worker in workers.items():
            if self._known.get(name) != worker:
                print(one_line(f"worker/{name}"), flush=True)
        self._known = workers


def _lasting(situation: Situation) -> Document:
    """What makes two looks the same: all but the time at which they were taken."""
    return {key: value for key, value in document(situation).items() if key != "observedAt"}


def as_line(found: Document) -> str:
    return json.dumps(found, ensure_ascii=False)


def as_json(found: Document) -> str:
    return json.dumps(found, indent=2, ensure_ascii=False)


def as_yaml(found: Document) -> str:
    """One of a stream of documents; libyaml where it is there, for large estates."""
    import yaml  # noqa: PLC0415

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return "---\n" + yaml.dump(found, Dumper=dumper, sort_keys=False, allow_unicode=True).rstrip("\n")

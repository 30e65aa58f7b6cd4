"""A running plan as a person sees it: live on a terminal, one line an event elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from types import TracebackType
from typing import Protocol

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner

from vgpuctl.cli.at_work import WORTH_TELLING_S, Picture
from vgpuctl.cli.harmless import one_line
from vgpuctl.cli.paper import Paper
from vgpuctl.cli.words import STEP_WORDS, clock, seconds
from vgpuctl.engine.runner import Progress


class Screen(Protocol):
    """A listener that is opened before and closed after the work."""

    def __enter__(self) -> Screen: ...
    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None: ...
    def progress(self, progress: Progress) -> None: ...
    def say(self, text: str) -> None: ...


def screen(out: Paper, *, quiet: bool = False) -> Screen:
    if quiet:
        return Silence()
    return LiveScreen(out) if out.is_terminal and sys.stdout.isatty() else Lines(out)


class Silence:
    def __enter__(self) -> Silence:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        return None

    def progress(self, progress: Progress) -> None:
        return None

    def say(self, text: str) -> None:
        print(one_line(text), file=sys.stderr)


class Lines(Silence):
    """`20:00:41 worker-1 suspended (41 s)`, each event once."""

    def __init__(self, out: Paper) -> None:
        self._out = out
        self._told: set[str] = set()

    def __enter__(self) -> Lines:
        return self

    def progress(self, progress: Progress) -> None:
        """Of a large switch hundreds may be done at once: they are written together."""
        fresh = {key: text for key, text in self._events(progress) if key not in self._told}
        self._told.update(fresh)
        self._write(fresh.values())

    def _events(self, progress: Progress) -> Iterator[tuple[str, str]]:
        for host, why in progress.decision.memory.going_back.items():
            yield f"back {host}", f"{host} goes back: {why}"
        for name, took in progress.done.items():
            kind, _, worker = name.partition("/")
            if kind in STEP_WORDS and name not in self._told:
                yield name, f"{worker} {STEP_WORDS[kind][1]}{f' ({seconds(took)})' if took >= WORTH_TELLING_S else ''}"
        for name, why in progress.decision.waits.items():
            if "budget" in why or "cannot be heard" in why or "asks to wait" in why:
                kind, _, worker = name.partition("/")
                yield f"{name} {why}", f"{worker} {STEP_WORDS.get(kind, (kind.lower(),))[0]}: {why}"

    def say(self, text: str) -> None:
        self._write([text])

    def _write(self, texts: Iterable[str]) -> None:
        now = clock(datetime.now().astimezone())
        # Reasons quote servers and people: one event is one line, or a name could write events of its own.
        if lines := "\n".join(f"{now} {one_line(text)}" for text in texts):
            self._out.print(lines)
            self._out.file.flush()


class LiveScreen:
    """Redrawn in place."""

    def __init__(self, out: Paper) -> None:
        self._out = out
        self._live = Live(console=out, refresh_per_second=8, transient=False)
        self._spinner = Spinner("dots")

    def __enter__(self) -> LiveScreen:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._live.console.print(one_line(text))

    def progress(self, progress: Progress) -> None:
        picture = Picture(progress, str(self._spinner.render(progress.elapsed_s)))
        self._live.update(Group(*picture.lines(self._out.width, self._out.height - 1)))

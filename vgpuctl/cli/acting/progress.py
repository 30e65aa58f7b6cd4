"""A running plan as a person sees it: live on a terminal, one line per event elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from types import TracebackType
from typing import Protocol

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner

from vgpuctl.basics.durations import format_duration
from vgpuctl.cli.acting.progress_view import WORTH_SHOWING_S, ProgressView
from vgpuctl.cli.safe_console import SafeConsole
from vgpuctl.cli.sanitize import one_line
from vgpuctl.cli.times import clock
from vgpuctl.engine.runner import Progress
from vgpuctl.planning.steps import kind_named
from vgpuctl.reporting.waits import PHRASES, sentence


class Screen(Protocol):
    """A listener that is opened before the work and closed after it."""

    def __enter__(self) -> Screen: ...
    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None: ...
    def progress(self, progress: Progress) -> None: ...
    def say(self, text: str) -> None: ...


def screen(out: SafeConsole, *, quiet: bool = False) -> Screen:
    if quiet:
        return Quiet()
    return LiveScreen(out) if out.is_terminal and sys.stdout.isatty() else Lines(out)


class Quiet:
    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        return None

    def progress(self, progress: Progress) -> None:
        return None

    def say(self, text: str) -> None:
        print(one_line(text), file=sys.stderr)


class Lines(Quiet):
    """Prints each event once: `20:00:41 worker-1 suspended (41 s)`."""

    def __init__(self, out: SafeConsole) -> None:
        self._out = out
        self._printed: set[str] = set()
        self._waits_since_s: dict[str, float] = {}

    def __enter__(self) -> Lines:
        return self

    def progress(self, progress: Progress) -> None:
        """Print new events. They are written together: in a large switch hundreds may end at once."""
        new = {key: text for key, text in self._events(progress) if key not in self._printed}
        self._printed.update(new)
        self._write(new.values())

    def _events(self, progress: Progress) -> Iterator[tuple[str, str]]:
        for host, cause in progress.decision.state.going_back.items():
            yield f"back {host}", f"{host} goes back: {cause}"
        for step, took_s in progress.done.items():
            finished = kind_named(step.kind).finished
            if finished and step not in self._printed:
                took = f" ({format_duration(took_s)})" if took_s >= WORTH_SHOWING_S else ""
                yield step, f"{step.subject} {finished}{took}"
        yield from self._waits(progress)

    def _waits(self, progress: Progress) -> Iterator[tuple[str, str]]:
        """Yield the waits that have lasted long enough to be reported. A wait that ended begins anew."""
        found = {
            f"{step} {why}": (step, wait) for step, wait in progress.decision.waits.items() if (why := sentence(wait))
        }
        now_s = progress.elapsed_s
        self._waits_since_s = {key: self._waits_since_s.get(key, now_s) for key in found}
        for key, (step, wait) in found.items():
            phrase = PHRASES[wait.reason]
            if not phrase.at_work and now_s - self._waits_since_s[key] >= phrase.reported_after_s:
                yield key, f"{step.subject} {kind_named(step.kind).doing}: {sentence(wait)}"

    def say(self, text: str) -> None:
        self._write([text])

    def _write(self, texts: Iterable[str]) -> None:
        now = clock(datetime.now().astimezone())
        # One event is one line. Reasons quote servers and people, and a name could fake an event of its own.
        if lines := "\n".join(f"{now} {one_line(text)}" for text in texts):
            self._out.print(lines)
            self._out.file.flush()


class LiveScreen:
    """Redraws the picture in place."""

    def __init__(self, out: SafeConsole) -> None:
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
        picture = ProgressView(progress, str(self._spinner.render(progress.elapsed_s)))
        self._live.update(Group(*picture.lines(self._out.width, self._out.height - 1)))

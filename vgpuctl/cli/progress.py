"""A running plan as a person sees it: live on a terminal, one line an event elsewhere."""

from __future__ import annotations

import sys
from datetime import datetime
from types import TracebackType
from typing import Protocol

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from vgpuctl.cli.harmless import harmless
from vgpuctl.cli.paper import Paper
from vgpuctl.cli.plans import place_of
from vgpuctl.cli.words import STEP_WORDS, clock, seconds
from vgpuctl.engine.runner import Progress

CARD_WAIT = "waits for the card"
SHOWN_AT_MOST = 5
WORTH_TELLING_S = 0.5


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
        print(text, file=sys.stderr)


class Lines(Silence):
    """`20:00:41 worker-1 suspended (41 s)`, each event once."""

    def __init__(self, out: Paper) -> None:
        self._out = out
        self._told: set[str] = set()

    def __enter__(self) -> Lines:
        return self

    def progress(self, progress: Progress) -> None:
        for host, why in progress.decision.memory.going_back.items():
            self._once(f"back {host}", f"{host} goes back: {why}")
        for name, took in progress.done.items():
            kind, _, worker = name.partition("/")
            if kind in STEP_WORDS:
                self._once(
                    name, f"{worker} {STEP_WORDS[kind][1]}{f' ({seconds(took)})' if took >= WORTH_TELLING_S else ''}"
                )
        for name, why in progress.decision.waits.items():
            if "budget" in why or "cannot be heard" in why or "asks to wait" in why:
                kind, _, worker = name.partition("/")
                self._once(f"{name} {why}", f"{worker} {STEP_WORDS.get(kind, (kind.lower(),))[0]}: {why}")

    def say(self, text: str) -> None:
        self._line(text)

    def _once(self, key: str, text: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self._line(text)

    def _line(self, text: str) -> None:
        self._out.print(f"{clock(datetime.now().astimezone())} {text}")
        self._out.file.flush()


class LiveScreen:
    """A line a worker, redrawn in place."""

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
        self._live.console.print(text)

    def progress(self, progress: Progress) -> None:
        self._live.update(self._picture(progress))

    def _picture(self, progress: Progress) -> Group:
        workers = dict.fromkeys(step.worker for step in (*progress.first, *progress.decision.plan))
        parts: list[Text | Table] = []
        for host in dict.fromkeys(place_of(progress.fleet, name) for name in workers):
            parts += [Text(_host_line(progress, host), style="bold"), self._host(progress, host, list(workers))]
        return Group(*parts, Text(_summary(progress), style="dim"))

    def _host(self, progress: Progress, host: str, workers: list[str]) -> Table:
        table = Table.grid(padding=(0, 3, 0, 0))
        for name in workers:
            if place_of(progress.fleet, name) == host:
                table.add_row(Text(f"  {name}"), self._worker(progress, name))
        return table

    def _worker(self, progress: Progress, worker: str) -> Text:
        done = [name for name in progress.done if name.endswith(f"/{worker}")]
        parts = [_done_text(name, progress.done[name]) for name in done if name.split("/")[0] in STEP_WORDS]
        left = progress.decision.plan.of(worker)
        if left:
            parts.append(self._now(progress, left[0].name))
        return Text("   ").join(parts[-SHOWN_AT_MOST:]) if parts else Text("✓ stays asleep", style="dim")

    def _now(self, progress: Progress, name: str) -> Text:
        why = progress.decision.waits.get(name, "")
        kind = name.split("/", maxsplit=1)[0]
        if name not in progress.decision.waits or why == CARD_WAIT:
            return Text("· waits for the card" if kind == "PowerOn" else "· waits", style="dim")
        frame = self._spinner.render(progress.elapsed_s)
        word = STEP_WORDS.get(kind, ("marking", ""))[0]
        told = f": {harmless(why)}" if why and "at work on it" not in why else ""
        return Text.assemble((str(frame), "cyan"), f" {word}{told}")


def _done_text(name: str, took_s: float) -> Text:
    took = f" {seconds(took_s)}" if took_s >= WORTH_TELLING_S else ""
    return Text.assemble(("✓ ", "green"), f"{STEP_WORDS[name.partition('/')[0]][1]}{took}")


def _host_line(progress: Progress, host: str) -> str:
    cards = progress.fleet.hosts[host].cards if host in progress.fleet.hosts else ()
    told = f" · {cards[0].model} {cards[0].pci_id.removesuffix('.0')}" if len(cards) == 1 else ""
    told = told or (f" · {len(cards)} cards" if cards else "")
    back = progress.decision.memory.going_back.get(host)
    return f"{host}{told}" + (f" · goes back: {back}" if back else "")


def _summary(progress: Progress) -> str:
    workers = {step.worker for step in progress.first if step.worker not in progress.fleet.workloads}
    left = {step.worker for step in progress.decision.plan if step.worker not in progress.fleet.workloads}
    if not left:
        return f"{len(workers)} of {len(workers)} · {seconds(progress.elapsed_s)}"
    stop = "ending what is in flight" if progress.decision.memory.stopping else "Ctrl-C stops after this step"
    return f"{len(workers - left)} of {len(workers)} · {seconds(progress.elapsed_s)}    {stop}"

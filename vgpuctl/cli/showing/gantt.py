"""A switch as bars over time, in columns of text, and the code that the drawn picture shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from vgpuctl.basics.durations import format_duration
from vgpuctl.cli.showing.estate.layout import cell
from vgpuctl.model.journal import Entry, PastStep
from vgpuctl.model.step_id import StepId
from vgpuctl.planning.steps import Look, kind_named
from vgpuctl.reporting.step_history import longest_way

#: The colour of each group of steps.
COLOURS = {
    Look.MARK: "dim",
    Look.SCALE: "magenta",
    Look.DRAIN: "yellow",
    Look.SUSPEND: "blue",
    Look.SHUT_DOWN: "blue",
    Look.ATTACH: "magenta",
    Look.POWER_ON: "green",
    Look.BACK: "cyan",
}
TICKS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
LONGEST_NAME = 24
COLUMNS_A_TICK = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One step's bar. `open`: its end was not seen. `decides`: it is on the longest way."""

    step: PastStep
    word: str
    from_s: float
    to_s: float
    open: bool
    decides: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """The bars of one worker or workload, in order."""

    host: str
    subject: str
    bars: tuple[Bar, ...]

    @property
    def shown(self) -> str:
        """Return the name without the rest of a workload's key."""
        return self.subject.rpartition("/")[2]


def word(step: PastStep) -> str:
    return kind_named(step.kind).bar or step.what


def lanes(entry: Entry) -> list[Lane]:
    """Return the lanes host by host. An open bar ends where the worker's next one begins, or with the whole switch."""
    way = {step.id for step in longest_way(entry)}
    subjects: dict[tuple[str, str], list[PastStep]] = {}
    for step in sorted(entry.steps, key=lambda step: step.began_s):
        subjects.setdefault((step.host, step.subject), []).append(step)
    hosts = dict.fromkeys(host for host, _ in subjects)
    ordered = sorted(subjects, key=lambda lane: list(hosts).index(lane[0]))
    return [Lane(host, subject, tuple(_bars(entry, subjects[host, subject], way))) for host, subject in ordered]


def _bars(entry: Entry, steps: list[PastStep], way: set[StepId]) -> Iterator[Bar]:
    ends = [step.began_s for step in steps[1:]] + [entry.seconds]
    for step, next_s in zip(steps, ends, strict=True):
        yield Bar(
            step=step,
            word=word(step),
            from_s=step.began_s,
            to_s=max(step.began_s, next_s if step.ended_s is None else step.ended_s),
            open=not step.done,
            decides=step.id in way,
        )


def ticks(whole_s: float, most: int) -> list[int]:
    """Return round times from begin to end, at most `most`."""
    every = next((tick for tick in TICKS_S if whole_s / tick < most), TICKS_S[-1])
    return list(range(0, int(whole_s) + 1, every))


def gantt(entry: Entry, width: int) -> Iterator[Text]:
    """Yield a line per worker, such as `▐drain▌▐──suspend──▌`, under a line of times."""
    found = lanes(entry)
    names = min(max((len(lane.shown) for lane in found), default=0), LONGEST_NAME, width // 3)
    room = width - names - 2
    scale = room / max(entry.seconds, max((bar.to_s for lane in found for bar in lane.bars), default=0.0), 0.001)
    yield Text(" " * (names + 2)).append(_axis(entry.seconds, scale, room), "dim")
    several = len({lane.host for lane in found}) > 1
    host = None
    for lane in found:
        if several and lane.host != host:
            host = lane.host
            yield cell(host or "Workloads", "bold")
        line = cell(f"{_short(lane.shown, names):<{names}}  ")
        for part in _drawn(lane, scale):
            line.append_text(part)
        line.rstrip()
        yield line


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _axis(whole_s: float, scale: float, room: int) -> str:
    line = ""
    for tick in ticks(whole_s, max(room // COLUMNS_A_TICK, 1)):
        label = format_duration(tick)
        at = min(round(tick * scale), room - len(label))
        if at >= len(line) and round(tick * scale) - at < len(label):
            line = f"{line:<{at}}{label} "
    return line.rstrip()


def _drawn(lane: Lane, scale: float) -> Iterator[Text]:
    """Yield a lane's bars. A bar shorter than a column is not drawn; if there is no other, a dot marks the time."""
    column = 0
    for bar in lane.bars:
        begin, end = max(round(bar.from_s * scale), column), round(bar.to_s * scale)
        if end > begin and (bar.open or (bar.to_s - bar.from_s) * scale >= 1):
            yield Text(" " * (begin - column))
            style = "red" if bar.open else COLOURS[kind_named(bar.step.kind).look]
            yield cell(_block(bar, end - begin), f"bold {style}" if bar.decides else style)
            column = end
    if not column and lane.bars:
        yield Text(f"{' ' * round(lane.bars[0].from_s * scale)}·", "dim")


def _block(bar: Bar, width: int) -> str:
    if width == 1:
        return "▐"
    end = "╳" if bar.step.given_up else "…" if bar.open else "▌"
    return f"▐{bar.word[: width - 2]:─^{width - 2}}{end}"

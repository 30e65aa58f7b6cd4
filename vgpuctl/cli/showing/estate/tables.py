"""The estate for people: shifts, cards, workers, waiting pods, and what is out of step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from rich.text import Text

from vgpuctl.basics.phrases import count, folded_names
from vgpuctl.cli.sanitize import one_line
from vgpuctl.cli.showing.estate.layout import Row, cell, columns, header_row, paragraph, unbroken
from vgpuctl.cli.showing.estate.orders import order_lines
from vgpuctl.cli.showing.estate.remarks import headline, host_remarks, note, power_word
from vgpuctl.cli.showing.estate.tail import out_of_step, quota_lines, resting_lines, waiting_lines
from vgpuctl.cli.showing.estate.worker_columns import COLUMNS, Column, carried
from vgpuctl.model.hosts import Card, Host
from vgpuctl.reporting.situation import JudgedWorker, Situation, node_word

BAR = 16
#: Wide tables, if asked for, are as wide as their contents.
ENDLESS = 10_000
#: In tables with more rows than this, similar rows are combined.
TOGETHER_ABOVE = 40

T = TypeVar("T")


def screen(situation: Situation, width: int, *, wide: bool = False) -> list[Text]:
    """Return the whole estate, part by part."""
    return _with_gaps(*_body(situation, width, wide=wide), _tail(situation, width))


def fitted(situation: Situation, size: tuple[int, int], *, wide: bool = False) -> list[Text]:
    """Return as much as fits a window. If the tables are too long, the lines below them are cut first."""
    width, height = size
    body, tail = _with_gaps(*_body(situation, width, wide=wide), [Text()])[:-1], _tail(situation, width)
    tail = _cut(tail, max(height // 2, height - len(body)))
    return [*_cut(body, height - len(tail)), *tail]


def _cut(lines: list[Text], room: int) -> list[Text]:
    if len(lines) <= room:
        return lines
    shown = lines[: max(0, room - 1)]
    return [*shown, Text(f"… {len(lines) - len(shown)} lines more than fit", "dim")]


def _body(situation: Situation, width: int, *, wide: bool) -> list[list[Text]]:
    head = [*stale_lines(situation, width), *head_lines(situation, width), *order_lines(situation, width)]
    room = ENDLESS if wide else width
    return [head, card_lines(situation, room, wide=wide), worker_lines(situation, room, wide=wide)]


def _tail(situation: Situation, width: int) -> list[Text]:
    return [
        *waiting_lines(situation, width),
        *resting_lines(situation, width),
        *quota_lines(situation, width),
        *out_of_step(situation, width),
    ]


def _with_gaps(*parts: list[Text]) -> list[Text]:
    return [line for part in parts if part for line in (*part, Text())][:-1]


def stale_lines(situation: Situation, width: int) -> Iterator[Text]:
    for name, since in situation.stale.items():
        text = f"{name} cannot be heard since {since.astimezone():%H:%M:%S}: what is shown of it is from before."
        yield from paragraph(text, width, "bold red")
        if why := situation.fleet.silence.get(name):
            yield from paragraph(one_line(f"  {why}"), width, "red")


def head_lines(situation: Situation, width: int) -> Iterator[Text]:
    for state in situation.states:
        shift, rest = headline(state, situation)
        parts = (unbroken(one_line(part), width) for part in rest.split(" · "))
        first, *more = paragraph(f"{one_line(shift)} {' · '.join(parts)}", width)
        first.stylize("bold", 0, len(shift))
        yield from (first, *more)
    if not situation.states:
        yield from paragraph("No timetable: no worker is put to sleep or woken by the hour.", width, "dim")


def card_lines(situation: Situation, width: int, *, wide: bool) -> list[Text]:
    """Return a line per card; without `wide`, only cards of hosts with workers."""
    ours = {judged.worker.host for judged in situation.workers}
    hosts = [host for host in situation.hosts if wide or host.name in ours]
    seats = [(host, card) for host in hosts for card in host.cards]
    together = not wide and len(seats) > TOGETHER_ABOVE
    rows = [_card_row(situation, group) for group in _grouped(seats, _alike_cards(situation, together=together))]
    rows += [Row((cell(h.name), Text("–"), Text("–")), cell(host_remarks(h), "yellow")) for h in hosts if not h.cards]
    return list(columns(header_row("HOST", "CARD", "FRAME", note="HOLDS"), rows, width)) if rows else []


def _alike_cards(situation: Situation, *, together: bool) -> Callable[[tuple[Host, Card]], object]:
    def key(seat: tuple[Host, Card]) -> object:
        host, card = seat
        if not together:
            return host.name, card.pci_id
        return card.model, card.frame_mib, situation.used_mib(card), len(card.holds), host_remarks(host)

    return key


def _card_row(situation: Situation, seats: list[tuple[Host, Card]]) -> Row:
    host, card = seats[0]
    used, total = (round(mib / 1024) for mib in (situation.used_mib(card), card.frame_mib))
    filled = round(BAR * min(1.0, used / total)) if total else 0
    frame = (
        Text("█" * filled, "green")
        .append("░" * (BAR - filled), "dim")
        .append(f"  {used:>{len(str(total))}}/{total} GB")
    )
    where = f"{card.model} {card.pci_id.removesuffix('.0')}"
    if len(seats) == 1:
        holds = " ".join([*filter(None, [host_remarks(host)]), folded_names(card.holds, 10_000)]) or "–"
        return Row((cell(host.name), cell(where), frame), cell(holds))
    each = f"{len(card.holds)} each" if card.holds else "–"
    cards = f"{len(seats)} × {card.model}"
    return Row(
        (cell(folded_names((h.name for h, _ in seats), 30)), cell(cards), frame),
        cell(" ".join([each, host_remarks(host)])),
    )


def worker_lines(situation: Situation, width: int, *, wide: bool) -> list[Text]:
    if not situation.workers:
        return list(paragraph(_nobody(situation), width, "dim"))
    together = not wide and len(situation.workers) > TOGETHER_ABOVE
    key = (lambda judged: _state(situation, judged)) if together else (lambda judged: judged.worker.name)
    shown = [column for column in COLUMNS if wide or not column.wide]
    rows = [_row(situation, group, shown) for group in _grouped(situation.workers, key)]
    lines = list(columns(header_row(*(column.head for column in shown)), rows, width))
    awake = any(worker.on for worker in situation.fleet.workers.values())
    return lines if awake else [*lines, Text("No worker is awake.", "dim")]


def _nobody(situation: Situation) -> str:
    if situation.fleet.workers:
        return f"None of {count(len(situation.fleet.workers), 'worker')} is selected."
    return "No worker: no VM of vCenter is one by profiles.yaml."


def _state(situation: Situation, judged: JudgedWorker) -> object:
    remark = note(judged, situation.now, brief=True)
    return power_word(judged.worker), carried(situation, judged), node_word(judged), remark


def _row(situation: Situation, group: list[JudgedWorker], shown: list[Column]) -> Row:
    cells = tuple(column.of(situation, group) for column in shown)
    return Row(cells, cell(note(group[0], situation.now, brief=len(group) > 1), "dim"))


def _grouped(things: list[T] | tuple[T, ...], key: Callable[[T], object]) -> list[list[T]]:
    """Group similar things, in the order of the first of each."""
    found: dict[object, list[T]] = {}
    for thing in things:
        found.setdefault(key(thing), []).append(thing)
    return list(found.values())

"""A running plan in lines that fit a window: a line per worker, or per host if the workers are too many."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rich.text import Text

from vgpuctl.basics.durations import format_duration
from vgpuctl.basics.names import natural
from vgpuctl.basics.phrases import count, folded_names
from vgpuctl.cli.acting.plans import place_of
from vgpuctl.cli.sanitize import one_line
from vgpuctl.engine.runner import Progress
from vgpuctl.model.plan import Step
from vgpuctl.model.wait import UNDER_WAY, Reason
from vgpuctl.planning.steps import DrainFirst, PowerOn, kind_named
from vgpuctl.reporting.waits import sentence

WORTH_SHOWING_S = 0.5
GAP = 3
#: The least width for a sentence beside the names; a narrower one goes below them.
LEAST_ROOM = 24


@dataclass
class ProgressView:
    """A running plan at one moment. `spinner`: the current sign beside steps at work."""

    progress: Progress
    spinner: str = "·"
    hosts: Mapping[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        first, left = self.progress.first, self.progress.decision.plan
        hosts: dict[str, list[str]] = {}
        for worker in dict.fromkeys(step.worker for step in (*first, *left)):
            hosts.setdefault(place_of(self.progress.fleet, worker), []).append(worker)
        self.hosts = hosts

    def lines(self, width: int, height: int) -> list[Text]:
        """Return the lines of the picture. The last line, the summary, is always among them."""
        whole = list(self._worker_by_worker(width)) if self._rows < height else []
        if whole and len(whole) < height:
            return [*whole, _cut(self._summary(), width)]
        return [*self._host_by_host(width, height - 1), _cut(self._summary(), width)]

    @property
    def _rows(self) -> int:
        return len(self.hosts) + sum(map(len, self.hosts.values()))

    @cached_property
    def _next(self) -> dict[str, Step]:
        return self.progress.decision.plan.next_steps()

    @cached_property
    def _done(self) -> dict[str, list[str]]:
        """Return what was done for each worker, in words."""
        found: dict[str, list[str]] = {}
        for step, took_s in self.progress.done.items():
            if finished := kind_named(step.kind).finished:
                took = f" {format_duration(took_s)}" if took_s >= WORTH_SHOWING_S else ""
                found.setdefault(step.subject, []).append(f"{finished}{took}")
        return found

    def _worker_by_worker(self, width: int) -> Iterator[Text]:
        for host, workers in self.hosts.items():
            yield from _folded(Text(self._host_line(host), style="bold"), width, 2)
            wide = max(map(len, workers))
            for worker in workers:
                yield from self._worker_lines(f"  {one_line(worker):<{wide}}{' ' * GAP}", worker, width)

    def _worker_lines(self, head: str, worker: str, width: int) -> Iterator[Text]:
        """Yield a worker's lines.

        The current step matters most; the latest finished ones are shown as far as they fit.
        """
        now = self._now(worker)
        done = [Text.assemble(("✓ ", "green"), text) for text in self._done.get(worker, ())]
        parts = [*done, now] if now else done or [Text("✓ stays asleep", "dim")]
        while len(parts) > 1 and len(head) + sum(part.cell_len + GAP for part in parts) - GAP > width:
            parts = parts[1:]
        text = Text(" " * GAP).join(parts)
        beside = len(head) if width - len(head) >= LEAST_ROOM else 4
        yield from _folded(Text(head).append_text(text), width, beside)

    def _now(self, worker: str) -> Text | None:
        """Return what the worker is doing now, or why it is not."""
        step = self._next.get(worker)
        if step is None:
            return None
        wait = self.progress.decision.waits.get(step.id, UNDER_WAY)
        if not self._is_working(worker):
            if self.progress.decision.state.stopping:
                return Text(f"· stopped before: {one_line(step.describe())}", "dim")
            return Text(one_line(f"· waits{self._turn(step)}"), "dim")
        why = "" if wait.reason is Reason.VCENTER_TASK else one_line(sentence(wait))
        text = f": {why}" if why else ""
        return Text.assemble((self.spinner, "cyan"), f" {step.doing}{text}")

    def _turn(self, step: Step) -> str:
        """Return what must come first, as far as that is worth a word."""
        if isinstance(step, PowerOn):
            return " for the card"
        needs = self.progress.decision.plan.needs[step.id]
        first = folded_names(sorted(need.subject for need in needs if kind_named(need.kind) is DrainFirst))
        return f" until {first} has drained the pods it failed on" if first else ""

    def _is_working(self, worker: str) -> bool:
        """True if the worker's next step is at work, or held up by something other than a card."""
        decision, seen = self.progress.decision, self.progress.fleet.workers.get(worker)
        if decision.state.stopping:
            busy = seen is not None and (seen.busy_with is not None or seen.shutting_down)
            return not decision.finished and (busy or worker in decision.state.out())
        wait = decision.waits.get(self._next[worker].id)
        return wait is not None and wait.reason is not Reason.CARD

    def _host_by_host(self, width: int, height: int) -> list[Text]:
        """Return a line per host, those with work first. If even the hosts are too many, the rest is counted."""
        left = {host: [worker for worker in workers if worker in self._next] for host, workers in self.hosts.items()}
        hosts = sorted(self.hosts, key=lambda host: (not left[host], natural(host)))
        shown = hosts if len(hosts) <= height else hosts[: height - 1]
        lines = [_cut(self._brief(host, left[host]), width) for host in shown]
        if more := hosts[len(shown) :]:
            done = sum(not left[host] for host in more)
            text = f"{done} of them done" if done < len(more) else "all done"
            lines.append(Text(f"… {count(len(more), 'more host')}, {text}", "dim"))
        return lines

    def _brief(self, host: str, left: list[str]) -> Text:
        """Return a host's line: `esx-1 · 4 cards   12 of 20   3 draining · 4 suspending · 1 waits`."""
        workers = self.hosts[host]
        doing = Counter(self._state_word(worker) for worker in left)
        text = " · ".join(f"{number} {word}" for word, number in doing.items()) or "✓"
        line = Text(self._host_line(host), style="bold")
        return line.append(
            f"{' ' * GAP}{len(workers) - len(left)} of {len(workers)}{' ' * GAP}{text}", style="not bold"
        )

    def _state_word(self, worker: str) -> str:
        return self._next[worker].doing if self._is_working(worker) else "waiting"

    def _host_line(self, host: str) -> str:
        progress = self.progress
        cards = progress.fleet.hosts[host].cards if host in progress.fleet.hosts else ()
        text = f" · {cards[0].model} {cards[0].pci_id.removesuffix('.0')}" if len(cards) == 1 else ""
        text = text or (f" · {len(cards)} cards" if cards else "")
        back = progress.decision.state.going_back.get(host)
        return one_line(f"{host}{text}" + (f" · goes back: {back}" if back else ""))

    def _summary(self) -> Text:
        workers, decision = [name for names in self.hosts.values() for name in names], self.progress.decision
        done = f"{len(workers) - len(self._next)} of {len(workers)} · {format_duration(self.progress.elapsed_s)}"
        if not self._next:
            return Text(done, "dim")
        stop = "finishing the steps under way" if decision.state.stopping else "Ctrl-C stops after this step"
        return Text(f"{done}    {'stopped' if decision.finished else stop}", "dim")


def _folded(line: Text, width: int, inset: int) -> Iterable[Text]:
    """Fold a line between words; the following lines are indented to its text."""
    if line.cell_len <= width:
        return [line]
    first = textwrap.wrap(line.plain, width, break_long_words=False, break_on_hyphens=False, drop_whitespace=False)[0]
    rest = line.plain[len(first) :].strip()
    below = textwrap.wrap(rest, max(width - inset, 1), break_long_words=False, break_on_hyphens=False)
    return [line[: len(first)], *(Text(" " * inset + part, line.style) for part in below)]


def _cut(line: Text, width: int) -> Text:
    if line.cell_len > width:
        line.truncate(width, overflow="ellipsis")
    return line

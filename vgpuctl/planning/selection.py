"""Which workers a command line means: names, ranges and globs, and a selector over their nodes' labels."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from vgpuctl.model.errors import UsageError
from vgpuctl.model.fleet import Fleet, Selector
from vgpuctl.model.names import RANGE, Names, fold, is_glob

PREFIX = "worker/"
MOST = 100_000


@dataclass(frozen=True)
class Selection:
    """`names` as they were given; none at all means every worker. `selector`: None asks nothing of the nodes."""

    names: tuple[str, ...] = ()
    selector: Selector | None = None

    @property
    def everything(self) -> bool:
        return not self.names and self.selector is None

    @cached_property
    def _wanted(self) -> Names:
        """`worker/NAME`, as `-o name` prints it, is taken too."""
        patterns = tuple(name.removeprefix(PREFIX) for name in self.names)
        for pattern in patterns:
            _check_size(pattern)
        return Names(patterns)

    def check(self, fleet: Fleet) -> None:
        """A name that is no worker's, or a glob that meets none, raises UsageError."""
        known = [*fleet.workers, *fleet.missing]
        there = set(known)
        if unknown := [name for name in self._wanted.plain if name not in there]:
            raise UsageError(f"There is no worker {', '.join(fold(unknown))}{_nearest(unknown, known)}", hint=_HINT)
        for pattern in filter(is_glob, self._wanted.patterns):
            if not Names((pattern,)).of(known):
                raise UsageError(f"No worker's name matches {pattern}.", hint=_HINT)

    def of(self, fleet: Fleet) -> frozenset[str]:
        """The workers that are meant, those too that vCenter does not know."""
        known = [*fleet.workers, *fleet.missing]
        meant = self._wanted.of(known) if self.names else known
        if self.selector is None:
            return frozenset(meant)
        return frozenset(name for name in meant if name in fleet.workers and self._selected(fleet, name))

    def _selected(self, fleet: Fleet, name: str) -> bool:
        node = fleet.workers[name].node
        return node is not None and self.selector is not None and self.selector.matches(node.labels)


_HINT = "vgpuctl status -o name  lists the workers that profiles.yaml names and vCenter has."


def _check_size(pattern: str) -> None:
    size = 1
    for first, last in RANGE.findall(pattern):
        size *= max(0, int(last) - int(first) + 1) if max(len(first), len(last)) < 10 else MOST + 1
    if not 0 < size <= MOST:
        raise UsageError(f"{pattern} is no range of workers, such as worker-[1-4].")


def _nearest(unknown: list[str], known: Collection[str]) -> str:
    close = difflib.get_close_matches(unknown[0], known, n=1) if len(unknown) == 1 else []
    return f"; did you mean {close[0]}?" if close else "."

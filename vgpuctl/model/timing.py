"""When a switch begins, what holds it back, and when it is tried again: what a timetable says beside its starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Literal

from vgpuctl.model.pods import Pod
from vgpuctl.model.selectors import Selector

#: How long before a start the coming switch is planned and forecast.
ANNOUNCE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When the switch to a shift may begin, measured from the shift's start.

    `early`: it begins so long before the start; `auto`: as long as such switches took, so that the shift is ready at
    its start. `begin_by`: what holds the switch back holds it at most until so long after the start; None: for ever.
    `skip_after`: if the switch could not begin until so long after the start, the start is skipped. `min_run`: if less
    than this of the shift remains, it is not begun.
    """

    early: timedelta | Literal["auto"] | None = None
    begin_by: timedelta | None = None
    skip_after: timedelta | None = None
    min_run: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a host's switch is tried before the host is parked. `pause`: the first pause; each one is doubled."""

    tries: int = 3
    pause: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSelector:
    """The pods with these labels, in the namespaces that a name or a glob matches."""

    selector: Selector
    namespace: str = "*"

    def means(self, pod: Pod) -> bool:
        return fnmatchcase(pod.namespace, self.namespace) and self.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldWhile:
    """Which pods hold a switch back while they run: by labels, or by an annotation that they carry (`Pod.not_now`)."""

    pods: tuple[PodSelector, ...] = ()
    annotations: frozenset[str] = field(default_factory=frozenset)

    def means(self, pod: Pod) -> bool:
        return not self.annotations.isdisjoint(pod.not_now) or any(choice.means(pod) for choice in self.pods)

"""What this process has done since it started: switches, steps and requests, counted as they end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from vgpuctl.daemon.serving.metric import Metric
from vgpuctl.engine.ports import Answer, Report, Sender, World
from vgpuctl.model.errors import BudgetError, ExitCode, SeveralBudgetsError
from vgpuctl.model.notice import Notice
from vgpuctl.model.requests import AttachVgpus, Evict, PowerOffVm, PowerOnVm, Request, ShutDownGuest, SuspendVm
from vgpuctl.operations import exit_code

#: From a second to four hours, doubling: a night's switch takes minutes, a drain may take hours.
SECONDS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 2400, 4800, 9600, 14400)
RESULTS = {
    ExitCode.DONE: "done",
    ExitCode.WENT_BACK: "went back",
    ExitCode.FAILED: "failed",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.UNREACHABLE: "unheard",
}
OF_VCENTER = (AttachVgpus, PowerOffVm, PowerOnVm, ShutDownGuest, SuspendVm)

SWITCH_SECONDS = Metric(
    name="vgpuctl_switch_duration_seconds",
    kind="histogram",
    labels=("timetable", "result"),
    help="How long switches took: done, went back, failed, interrupted, or unheard (a server was silent too long).",
)
STEP_SECONDS = Metric(
    name="vgpuctl_step_duration_seconds",
    kind="histogram",
    labels=("step",),
    help="How long the steps of switches took, by their kind, such as drain or resume.",
)
LAST_SUCCESS = Metric(
    name="vgpuctl_switch_last_success_timestamp_seconds",
    labels=("timetable",),
    help="When a switch of this process last ended well.",
)
EVICTIONS = Metric(
    name="vgpuctl_evictions_total",
    kind="counter",
    labels=("result",),
    help="Evictions that were asked for: evicted, budget (a disruption budget refused), or failed.",
)
REQUESTS = Metric(
    name="vgpuctl_requests_total",
    kind="counter",
    labels=("server", "request", "result"),
    help="Writes of switches, by server and kind: done, or failed.",
)
COUNTED = (SWITCH_SECONDS, STEP_SECONDS, LAST_SUCCESS, EVICTIONS, REQUESTS)


class Counters:
    """Counts in a registry. It is told of each switch and each request, from any thread."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._switches = _histogram(SWITCH_SECONDS, registry)
        self._steps = _histogram(STEP_SECONDS, registry)
        self._success = Gauge(LAST_SUCCESS.name, LAST_SUCCESS.help, LAST_SUCCESS.labels, registry=registry)
        self._evictions = _counter(EVICTIONS, registry)
        self._requests = _counter(REQUESTS, registry)

    def ended(self, timetable: str, report: Report) -> None:
        """Count a switch. One that found nothing to do counts as a success, and has no duration."""
        result = RESULTS[exit_code(report, refused=False)]
        if result == "done":
            self._success.labels(timetable).set(self._clock())
        if report.steps or result != "done":
            self._switches.labels(timetable, result).observe(report.seconds)
        for step in report.steps:
            self._steps.labels(step.step).observe(step.seconds)

    def counted(self, world: World) -> World:
        """Return the world whose requests are counted."""
        return replace(world, sender=_CountingSender(world.sender, self))

    def sent(self, request: Request, error: Exception | None) -> None:
        server = "vCenter" if isinstance(request, OF_VCENTER) else "Kubernetes"
        self._requests.labels(server, type(request).__name__, "failed" if error else "done").inc()
        if isinstance(request, Evict):
            self._evictions.labels(_eviction_result(error)).inc()


@dataclass(frozen=True, slots=True)
class _CountingSender:
    sender: Sender
    counters: Counters

    def send(self, request: Request) -> Answer:
        try:
            answer = self.sender.send(request)
        except Exception as error:
            self.counters.sent(request, error)
            raise
        self.counters.sent(request, None)
        return answer

    def check(self, requests: Iterable[Request]) -> None:
        self.sender.check(requests)

    def announce(self, notices: Sequence[Notice]) -> None:
        self.sender.announce(notices)


def _eviction_result(error: Exception | None) -> str:
    if error is None:
        return "evicted"
    return "budget" if isinstance(error, BudgetError | SeveralBudgetsError) else "failed"


def _histogram(metric: Metric, registry: CollectorRegistry) -> Histogram:
    return Histogram(metric.name, metric.help, metric.labels, buckets=SECONDS, registry=registry)


def _counter(metric: Metric, registry: CollectorRegistry) -> Counter:
    return Counter(metric.name, metric.help, metric.labels, registry=registry)

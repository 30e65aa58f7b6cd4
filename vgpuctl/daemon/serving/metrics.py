"""Metrics in Prometheus's format: the status document's, the daemon's own, and the counters'."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from vgpuctl import __version__
from vgpuctl.daemon.serving.document_metrics import DOCUMENT_METRICS
from vgpuctl.daemon.serving.metric import Document, Metric, Sample

BUILD = Metric(name="vgpuctl_build_info", labels=("version",), help="1, with the version of vgpuctl.")
LEADING = Metric(name="vgpuctl_leading", help="1 if this daemon leads, 0 if it stands by.")
READY = Metric(name="vgpuctl_ready", help="1 if /readyz says so.")
ROUND = Metric(name="vgpuctl_last_round_seconds", help="How long ago the loop's last round began or ended.")
FILES = Metric(name="vgpuctl_files_timestamp_seconds", help="When the files in force were last read.")
BROKEN = Metric(name="vgpuctl_files_broken", help="1 while the files on disk cannot be used; older ones are in force.")
FORECAST = Metric(
    name="vgpuctl_next_switch_forecast_seconds",
    labels=("timetable",),
    help="How long the coming switch will take. Known from the timetable's `announce` on.",
)
OWN = (BUILD, LEADING, READY, ROUND, FILES, BROKEN, FORECAST)


@dataclass(slots=True)
class OwnState:
    """What the metrics say of the daemon itself. `forecasts_s`: by timetable."""

    role: Callable[[], str | None]
    ready: Callable[[], bool]
    last_round_s: Callable[[], float | None]
    files_good_at: Callable[[], datetime]
    files_broken: Callable[[], bool]
    forecasts_s: Callable[[], dict[str, float]] = field(default=dict)

    def samples(self) -> Iterator[tuple[Metric, Iterable[Sample]]]:
        round_s = self.last_round_s()
        yield BUILD, [((__version__,), 1)]
        yield LEADING, [((), float(self.role() == "leading"))]
        yield READY, [((), float(self.ready()))]
        yield ROUND, [] if round_s is None else [((), round_s)]
        yield FILES, [((), self.files_good_at().timestamp())]
        yield BROKEN, [((), float(self.files_broken()))]
        yield FORECAST, [((name,), forecast_s) for name, forecast_s in self.forecasts_s().items()]


class Metrics:
    """Everything that Prometheus reads of this process."""

    def __init__(self, document: Callable[[], Document | None], own: OwnState, registry: CollectorRegistry) -> None:
        self._registry = registry
        registry.register(_Gauges(lambda: _document_samples(document())))
        registry.register(_Gauges(own.samples))
        # Prometheus: process_* and python_info have these names in every program.
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)

    def exposition(self) -> bytes:
        return generate_latest(self._registry)


class _Gauges(Collector):
    """Makes gauges anew at each scrape: what is gone has no value any more."""

    def __init__(self, samples: Callable[[], Iterator[tuple[Metric, Iterable[Sample]]]]) -> None:
        self._samples = samples

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for metric, samples in self._samples():
            family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            # Prometheus refuses the whole scrape if two samples have the same labels.
            for labels, value in dict(samples).items():
                family.add_metric([_clean(label) for label in labels], value)
            yield family


def _document_samples(document: Document | None) -> Iterator[tuple[Metric, Iterable[Sample]]]:
    if document is None:
        return
    for metric in DOCUMENT_METRICS:
        yield metric, metric.samples(document)


def _clean(label: str) -> str:
    """Return a label that is valid UTF-8: a name that a server sent may hold half a character."""
    return label.encode("utf-8", "replace").decode()

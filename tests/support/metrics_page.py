"""docs/reference/metrics.md, from the code: python -m tests.support.metrics_page writes it."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.paths import ROOT
from vgpuctl.daemon.serving.counters import COUNTED
from vgpuctl.daemon.serving.document_metrics import DOCUMENT_METRICS
from vgpuctl.daemon.serving.metric import DocumentMetric, Metric
from vgpuctl.daemon.serving.metrics import OWN

FILE = ROOT / "docs" / "reference" / "metrics.md"
HEAD = """\
# Metrics

The daemon serves these at `/metrics`, if it [listens](../how-to/watch-the-daemon.md). This page is made from the code.

All are gauges, unless the table says otherwise. A thing that is gone has no value any more. Labels name timetables,
shifts, hosts, cards and workers, or come from a fixed set. None names a pod or a person.

## From the status document

These are read from [the document](status.md#the-document) that `/status.json` shows at the same moment. They are
missing until both servers have been read once.
"""
OWN_HEAD = "\n## Of the daemon itself\n"
COUNTED_HEAD = """
## Counted since the daemon started

A daemon that stands by counts nothing. A histogram has the series `_bucket`, `_sum` and `_count`.
"""
TAIL = """
The usual `process_…` and `python_info` of Prometheus's library are there, too.
"""


def page() -> str:
    """The whole page."""
    parts = (HEAD, _fields(DOCUMENT_METRICS), OWN_HEAD, _plain(OWN), COUNTED_HEAD, _plain(COUNTED), TAIL)
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def _fields(metrics: Iterable[DocumentMetric]) -> str:
    rows = (f"| `{each.name}` | {_labels(each)} | {each.help} | `{each.field}` |" for each in metrics)
    return "\n".join(("", "| metric | labels | meaning | field |", "|---|---|---|---|", *rows))


def _plain(metrics: Iterable[Metric]) -> str:
    rows = (f"| `{each.name}` | {each.kind} | {_labels(each)} | {each.help} |" for each in metrics)
    return "\n".join(("", "| metric | kind | labels | meaning |", "|---|---|---|---|", *rows))


def _labels(metric: Metric) -> str:
    return ", ".join(f"`{label}`" for label in metric.labels)


if __name__ == "__main__":
    FILE.write_text(page())

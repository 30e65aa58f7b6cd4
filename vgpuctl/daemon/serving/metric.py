"""What a metric is called, what it means, and its labels. docs/reference/metrics.md is made from these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Document = dict[str, Any]
#: The labels' values, in their order, and the value.
Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. `kind`: as Prometheus calls it. `help`: one line for people."""

    name: str
    help: str
    kind: str = "gauge"
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMetric(Metric):
    """A metric that is read from the status document, so that the two never disagree. `field`: where it is read."""

    field: str
    samples: Callable[[Document], Iterable[Sample]]


def timestamp(text: str | None) -> float | None:
    """Return the Unix time in seconds; None if it is absent or unreadable, since people may write such times."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


def age_s(document: Document, since: str | None) -> float | None:
    """Return how long ago a moment was when the document was made."""
    began, now = timestamp(since), timestamp(document["observedAt"])
    return None if began is None or now is None else max(0.0, now - began)

"""Tells ahead whether the next shift will come, and in time: what is in its way, and when that has changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from vgpuctl.basics.durations import format_duration
from vgpuctl.reporting.forecast import forecast
from vgpuctl.reporting.risks import LookedAhead, Risk, held, refused, unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """A shift that begins at `start`. `end`: when the next one begins; None: never."""

    timetable: str
    shift: str
    start: datetime
    end: datetime | None = None

    def __str__(self) -> str:
        return f"{self.shift} on {self.timetable} ({self.start:%H:%M})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is expected of a coming shift. `length_s`: how long its switch will take; 0: there is nothing to do."""

    coming: Coming
    length_s: float
    risks: tuple[Risk, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """A sentence for people, and the workers that it concerns."""

    message: str
    workers: tuple[str, ...] = ()
    at_risk: bool = False


def outlook(looked: LookedAhead, coming: Coming) -> Outlook:
    """Return what is expected of the shift if it were begun as everything is now."""
    ahead = forecast(looked.plan, looked.fleet, looked.earlier)
    risks = (*refused(looked), *unfinished(looked, ahead), *held(looked), *_late(looked, coming, ahead.length_s))
    length_s = ahead.length_s if any(step.lasts for step in looked.plan) else 0.0
    return Outlook(coming=coming, length_s=length_s, risks=risks)


def _late(looked: LookedAhead, coming: Coming, length_s: float) -> Iterator[Risk]:
    if coming.end is not None and coming.start + timedelta(seconds=length_s) > coming.end:
        yield Risk(
            about=("too long",),
            message=f"takes about {format_duration(length_s)}, and the next shift begins at {coming.end:%H:%M}.",
            better=f"will be complete before {coming.end:%H:%M}.",
            workers=tuple(dict.fromkeys(step.subject for step in looked.plan)),
        )


def news(before: Outlook | None, now: Outlook) -> tuple[News, ...]:
    """Return what to tell: new risks, risks that are gone, and the length at first and once nothing is in the way."""
    former = before.risks if before is not None and before.coming == now.coming else ()
    told = {(risk.about, risk.cause) for risk in former}
    still = {risk.about for risk in now.risks}
    gone = {risk.about: risk for risk in former if risk.about not in still}
    worse = [_news(now, risk, risk.message, at_risk=True) for risk in now.risks if (risk.about, risk.cause) not in told]
    better = [_news(now, risk, risk.better, at_risk=False) for risk in gone.values()]
    return (*worse, *better, *_length(before, now))


def _length(before: Outlook | None, now: Outlook) -> Iterator[News]:
    about = f"It will take about {format_duration(now.length_s)}."
    if now.risks or not now.length_s:
        return
    if before is None or before.coming != now.coming:
        yield News(message=f"Nothing is in the way of {now.coming}. {about}")
    elif before.risks:
        yield News(message=f"Nothing is in the way of {now.coming} any more. {about}")


def _news(now: Outlook, risk: Risk, message: str, *, at_risk: bool) -> News:
    return News(message=f"{now.coming} {message}", workers=risk.workers, at_risk=at_risk)

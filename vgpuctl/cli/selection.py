"""Reads workers, numbers and times from the command line, or explains what is wrong with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from vgpuctl.basics.names import Names
    from vgpuctl.model.fleet import Fleet

PREFIX = "worker/"


def worker_names(patterns: list[str] | None) -> Names | None:
    """Return names, ranges and globs, also as `status -o name` prints them. None, if there are none, means all."""
    from vgpuctl.basics.names import Names  # noqa: PLC0415
    from vgpuctl.files.reader import count_names  # noqa: PLC0415

    patterns = [pattern.removeprefix(PREFIX) for pattern in patterns or ()]
    for pattern in patterns:
        if not count_names(pattern):
            raise UsageError(
                f"{pattern!r} is not a worker's name, a range such as worker-[1-4], or a glob such as 'gpu-*'."
            )
    return Names(tuple(patterns)) if patterns else None


def check_known(fleet: Fleet, names: Names | None) -> None:
    """Check that the names exist, as status does. A name without a VM is refused, because it can only be shown."""
    from vgpuctl.planning.selection import Selection  # noqa: PLC0415

    if names is None:
        return
    Selection(names).check(fleet)
    for name in names.plain:
        if name in fleet.missing:
            raise UsageError(f"{name} is in profiles.yaml, but vCenter has no VM of this name.")
    if not names.of(fleet.workers):
        raise UsageError(
            f"No worker is called {' or '.join(names.patterns)}.", hint="vgpuctl status lists all workers."
        )


def workers_out(text: str, total: int) -> int:
    """Return a number from `2`, or from a share such as `25%` of `total`, but at least 1."""
    from vgpuctl.model.share import Share  # noqa: PLC0415

    share = Share.read(text)
    if share is None:
        raise UsageError(f"--max-unavailable {text} is not a number from 1, or a share such as 25%.")
    return share.of(total)


def duration_s(text: str, option: str) -> float:
    from vgpuctl.basics.durations import parse_duration  # noqa: PLC0415

    found = parse_duration(text)
    if found is None:
        raise UsageError(f"{option} {text} is not a duration such as 90s, 10m or 1h.")
    return found


def end_of_order(until: str | None, lasting: str | None, now: datetime) -> datetime | None:
    """Return when an order ends by its options; None without them."""
    if lasting is not None and until is not None:
        raise UsageError("--for and --until both say when it ends.", hint="Give one of them.")
    if lasting is not None:
        return _after(now, lasting)
    return _moment(until, now) if until is not None else None


def _after(now: datetime, lasting: str) -> datetime:
    from vgpuctl.basics.bounded import LAST_YEAR  # noqa: PLC0415

    seconds = duration_s(lasting, "--for")
    if seconds < 1:
        raise UsageError(f"--for {lasting} would end at once.", hint="For example: --for 2h")
    try:
        ends = now + timedelta(seconds=round(seconds))
    except OverflowError:
        ends = datetime.max.replace(tzinfo=UTC)
    if ends.year >= LAST_YEAR:
        raise UsageError(f"--for {lasting} is longer than vgpuctl can count.", hint="Leave it out for no end.")
    return ends


def _moment(text: str, now: datetime) -> datetime:
    from vgpuctl.basics.bounded import UnreadableError  # noqa: PLC0415
    from vgpuctl.basics.moments import USUAL, parse_moment  # noqa: PLC0415

    try:
        found = parse_moment(text, now).astimezone(UTC)
    except UnreadableError:
        raise UsageError(f"--until {text} is not a time.", hint=f"Write {USUAL}.") from None
    if found <= now:
        raise UsageError(f"--until {text} is over already.", hint=f"It is {now.astimezone():%Y-%m-%d %H:%M} now.")
    return found

"""What the commands of people share: until when an order holds, who gave it, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli.common import warn_unverified
from vgpuctl.cli.times import ends_by
from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from vgpuctl.kube.order_book import OrderBook
    from vgpuctl.model.orders import Orders
    from vgpuctl.settings import Flags

ReasonOption = Annotated[str, typer.Option(metavar="TEXT", help="Why, for all that see it.", show_default=False)]
HostsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="HOST", help="Names, ranges such as esx-[1-4], or globs.", show_default=False),
]

LONGEST_REASON = 400
SOON = "The daemon takes it up within seconds."


def this_second() -> datetime:
    # An order must not begin later than the clock of the daemon that reads it at once, so fractions are cut off.
    return datetime.now(UTC).replace(microsecond=0)


def checked_reason(text: str) -> str:
    """Return the reason as one line."""
    reason = " ".join(text.split())
    if len(reason) > LONGEST_REASON:
        raise UsageError(f"--reason has more than {LONGEST_REASON} characters.")
    return reason


def order_book(flags: Flags) -> OrderBook:
    """Return the orders in the cluster. vCenter is not asked."""
    from vgpuctl.kube.order_book import OrderBook  # noqa: PLC0415
    from vgpuctl.settings import kubernetes_settings  # noqa: PLC0415

    return OrderBook.open(kubernetes_settings(flags), warn_unverified)


def when_taken_up(orders: Orders, now: datetime) -> str:
    """Return when the daemon will act on an order: not before the end of a pause."""
    pause = orders.paused(now)
    return f"The daemon takes it up after the pause {ends_by(pause, now)}." if pause else SOON


def hosts_meant(patterns: Sequence[str], known: Iterable[str], what: str, listed: str) -> list[str]:
    """Return the hosts that the patterns mean. UsageError for a name that is not known.

    `what`: what such a name is not, in words. `listed`: what the known hosts are.
    """
    from vgpuctl.basics.names import Names, natural  # noqa: PLC0415
    from vgpuctl.basics.phrases import first_names, folded_names  # noqa: PLC0415
    from vgpuctl.files.reader import count_names  # noqa: PLC0415

    for pattern in patterns:
        if not count_names(pattern):
            raise UsageError(f"{pattern!r} is not a host's name, a range such as esx-[1-4], or a glob such as 'esx-*'.")
    names, hosts = Names(tuple(patterns)), sorted(known, key=natural)
    found = names.of(hosts)
    lacking = [name for name in names.plain if name not in hosts] or ([] if found else list(patterns))
    if lacking:
        verb = "are" if len(lacking) > 1 else "is"
        hint = f"{listed}: {folded_names(hosts)}." if hosts else f"{listed}: none."
        raise UsageError(f"{first_names(lacking)} {verb} not {what}.", hint=hint)
    return found

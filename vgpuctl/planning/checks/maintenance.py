"""Hosts that people keep as they are, for a patch or a new card."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vgpuctl.basics.moments import full_moment
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hold import order_phrase
from vgpuctl.model.orders import Maintenance
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.planning.planner import would_move


@dataclass(frozen=True, kw_only=True)
class UnderMaintenance(Refusal):
    code = "VG118"
    title = "A person ordered maintenance of the host, so vgpuctl moves no worker on it."
    way_out = (
        "Wait until it ends, end it with vgpuctl maintenance exit HOST, or move its workers all the same: "
        "--include-held."
    )

    order: Maintenance

    @property
    def message(self) -> str:
        order = self.order
        until = full_moment(order.until) if order.until else ""
        return f"{self.host} is {order_phrase('under maintenance', order.who, until, order.reason)}."


def against_maintenance(fleet: Fleet, wish: Wish, host: str, workers: list[Worker]) -> Iterator[Refusal]:
    order = wish.maintenance.get(host)
    if order is not None and not wish.include_held and any(would_move(fleet, wish, worker) for worker in workers):
        yield UnderMaintenance(host=host, order=order)

"""Workers that need each other's cards but may not be out together: none of them would ever come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.refusal import Refusal
from vgpuctl.model.wish import Wish
from vgpuctl.planning.planner import plan_of_host
from vgpuctl.planning.waves import units


@dataclass(frozen=True, kw_only=True)
class SwapTooLarge(Refusal):
    code = "VG112"
    title = "Workers swap cards, so more of them must be out at once than max_unavailable allows."
    way_out = "Allow as many with --max-unavailable."

    workers: tuple[str, ...]

    @property
    def message(self) -> str:
        return f"{' '.join(self.workers)} swap cards, so all {len(self.workers)} must be out at once."

    @property
    def hint(self) -> str:
        return f"Allow it with --max-unavailable {len(self.workers)}"


def against_swaps(fleet: Fleet, wish: Wish, host: str, workers: list[Worker]) -> Iterator[Refusal]:
    if not wish.max_unavailable:
        return
    ladders, needs = plan_of_host(fleet, wish, host, [worker.name for worker in workers])
    # Workers that wait for each other's cards would wait for ever if only some may be out (decision 0009).
    for unit in units(fleet, ladders, needs):
        if len(unit.workers) > wish.max_unavailable:
            yield SwapTooLarge(host=host, workers=unit.workers)

"""The one operation behind every command and the daemon: look, plan, refuse or carry out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from vgpuctl.engine.ports import HostReport, Report, World
from vgpuctl.engine.reactor import Goal
from vgpuctl.engine.runner import Listener, Runner
from vgpuctl.model.errors import ExitCode, RefusedError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.plan import Plan, Refusal, Remark
from vgpuctl.model.wish import Wish
from vgpuctl.planning.planner import plan
from vgpuctl.planning.refusals import refusals
from vgpuctl.planning.remarks import remarks

MakeWish = Callable[[Fleet], Wish]
MakeFormer = Callable[[Wish], Wish]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """What would be done, and what cannot be: the content of a dry run."""

    fleet: Fleet
    wish: Wish
    plan: Plan
    refusals: tuple[Refusal, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def touches(self) -> bool:
        """Are pods or running VMs touched? Then a person is asked."""
        return any(step.name.startswith(("Drain/", "Suspend/", "ShutDown/")) for step in self.plan)


def look_ahead(fleet: Fleet, wish: Wish) -> Prospect:
    """Hosts that are refused are taken out of the wish; the others proceed."""
    found = refusals(fleet, wish)
    against = {refusal.host for refusal in found}
    kept = wish.only(name for name in wish.workers if name in fleet.workers and fleet.workers[name].host not in against)
    todo = plan(fleet, kept)
    refused = tuple(refusal for refusal in found if _work_on(fleet, wish, refusal.host))
    return Prospect(fleet=fleet, wish=kept, plan=todo, refusals=refused, remarks=remarks(fleet, kept))


def _work_on(fleet: Fleet, wish: Wish, host: str) -> bool:
    """A host where nothing is to be done has nothing to refuse."""
    mine = replace(wish.only(worker.name for worker in fleet.on_host(host)), prune=False)
    return bool(plan(fleet, mine))


@dataclass(slots=True)
class Operation:
    """A prospect that is carried out under the acting Lease."""

    world: World
    listener: Listener
    _runner: Runner | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    def interrupt(self) -> None:
        self._stopped = True
        if self._runner is not None:
            self._runner.interrupt()

    def carry_out(self, make: MakeWish, former: MakeFormer | None) -> Report:
        """Take the Lease, look again (somebody may have acted while we waited), and run."""
        self.world.lease.acquire(self.listener.say, lambda: self._stopped)
        try:
            fleet = self.world.observer.fleet()
            prospect = look_ahead(fleet, make(fleet))
            if prospect.refusals and not prospect.plan:
                raise refused(prospect)
            goal = Goal(wish=prospect.wish, former=former(prospect.wish) if former else None)
            self._runner = Runner(self.world, goal, self.listener)
            if self._stopped:
                self._runner.interrupt()
            return self._runner.run()
        finally:
            self.world.lease.release()


def refused(prospect: Prospect) -> RefusedError:
    """All refusals as the one error that ends an operation before anything was touched."""
    lines = []
    for refusal in prospect.refusals:
        lines += [refusal.message, *(f"  {detail}" for detail in refusal.details)]
    hints = dict.fromkeys(refusal.hint for refusal in prospect.refusals)
    return RefusedError("\n".join(lines), hint="\n".join([*hints, "Nothing was changed."]))


def exit_code(report: Report, refused: bool) -> ExitCode:
    ends = {host.end for host in report.hosts}
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if "failed" in ends:
        return ExitCode.FAILED
    if "went back" in ends:
        return ExitCode.WENT_BACK
    return ExitCode.FAILED if refused else ExitCode.DONE


def troubled(report: Report) -> list[HostReport]:
    return [host for host in report.hosts if host.end != "done"]

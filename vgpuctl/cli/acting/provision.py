"""vgpuctl provision"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.basics.durations import format_duration
from vgpuctl.basics.phrases import count
from vgpuctl.cli import completing
from vgpuctl.cli.access import with_access
from vgpuctl.cli.acting.act import CommandSpec, RunOptions, act
from vgpuctl.cli.options import (
    DebugOption,
    DeleteEmptyDirOption,
    DrainTimeoutOption,
    DryRunOption,
    ForceOption,
    GracePeriodOption,
    IncludeHeldOption,
    Output,
    OutputOption,
    WorkersArgument,
    YesOption,
)
from vgpuctl.cli.selection import check_known, duration_s, worker_names, workers_out
from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from vgpuctl.basics.names import Names
    from vgpuctl.files import Files
    from vgpuctl.model.fleet import Fleet
    from vgpuctl.model.timetable import DrainOptions
    from vgpuctl.model.wish import Wish
    from vgpuctl.settings import Flags

ProfileOption = Annotated[
    str | None,
    typer.Option(
        metavar="PROFILE|none",
        help="Give the named workers this profile instead of the file's.",
        show_default=False,
        autocompletion=completing.profiles,
    ),
]
MaxUnavailableOption = Annotated[
    str, typer.Option(metavar="N|N%", help="How many workers may be out at once. Workers that swap cards go together.")
]
PowerOffOption = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Power off a VM whose guest has not shut down after this time. Without it: never.",
        show_default=False,
    ),
]


@with_access
def command(
    flags: Flags,
    workers: WorkersArgument = None,
    profile: ProfileOption = None,
    max_unavailable: MaxUnavailableOption = "1",
    power_off_after: PowerOffOption = None,
    drain_timeout: DrainTimeoutOption = "10m",
    grace_period: GracePeriodOption = None,
    force: ForceOption = False,
    delete_emptydir_data: DeleteEmptyDirOption = False,
    include_held: IncludeHeldOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
    debug: DebugOption = False,
) -> None:
    """Give each worker the vGPU of its profile. Its power state stays as it was.

    A VM that is off is changed at once. A running VM with a wrong vGPU is drained, shut down, changed, started and
    uncordoned, in waves. A suspended VM is refused, because its state would be lost.

    Examples:

      vgpuctl provision --dry-run                 show the plan only
      vgpuctl provision --yes                     do not ask, for scripts
      vgpuctl provision worker-[1-4] --max-unavailable 2
      vgpuctl provision worker-5 --profile none   remove its vGPU
    """
    from vgpuctl.model.timetable import DrainOptions  # noqa: PLC0415

    def make_spec(files: Files) -> CommandSpec:
        drain = DrainOptions(
            timeout_s=duration_s(drain_timeout, "--drain-timeout"),
            grace_period_s=grace_period,
            force=force,
            delete_emptydir_data=delete_emptydir_data,
        )
        power_off_s = duration_s(power_off_after, "--power-off-after") if power_off_after else None
        request = _Request(worker_names(workers), profile, max_unavailable, drain, power_off_s)
        spec = request.make_spec(files)
        return spec.including_held() if include_held else spec

    act(RunOptions(flags=flags, output=output, dry_run=dry_run, yes=yes, debug=debug), make_spec)


@dataclass(frozen=True, slots=True)
class _Request:
    """What the command line asked for, and what it means for a fleet."""

    only: Names | None
    profile: str | None
    max_unavailable: str
    drain: DrainOptions
    power_off_after_s: float | None

    def make_spec(self, files: Files) -> CommandSpec:
        from vgpuctl.planning.wishes import former_wish  # noqa: PLC0415
        from vgpuctl.vsphere.property_filters import ObservationScope  # noqa: PLC0415

        profile = self._known_profile(files)
        workers_out(self.max_unavailable, 1)
        return CommandSpec(
            wish=lambda fleet: self._wish(fleet, files, profile),
            former=former_wish,
            nothing_to_do=lambda _: "Every worker carries its profile. Nothing to do.",
            done_text=lambda preview, report: (
                f"{count(len({step.subject for step in preview.plan}), 'worker')} provisioned in "
                f"{format_duration(report.seconds)}."
            ),
            # NVIDIA AI Enterprise: cards with large BARs need address space in the VM's settings.
            scope=ObservationScope(mmio=True, neighbours=True, drains=True),
        )

    def _known_profile(self, files: Files) -> str | None:
        from vgpuctl.basics.nearest import nearest  # noqa: PLC0415

        if self.profile is None:
            return None
        if self.only is None:
            raise UsageError(
                "--profile needs the names of workers.", hint="Add them: vgpuctl provision worker-1 --profile PROFILE"
            )
        known = files.catalogue.called(self.profile)
        if known is None:
            raise UsageError(
                f"There is no profile {self.profile}{nearest(self.profile, files.catalogue.profiles) or '.'}",
                hint=f"Known: {', '.join([*files.catalogue.profiles, 'none'])}.",
            )
        return known

    def _wish(self, fleet: Fleet, files: Files, profile: str | None) -> Wish:
        from vgpuctl.planning.wishes import Provisioning, provision_wish  # noqa: PLC0415

        check_known(fleet, self.only)
        provisioning = Provisioning(
            only=self.only,
            profile=profile,
            drain=self.drain,
            max_unavailable=workers_out(self.max_unavailable, len(fleet.workers)),
            power_off_after_s=self.power_off_after_s,
            now=datetime.now(UTC),
            exchanged=files.shift_profiles,
        )
        return provision_wish(fleet, files.catalogue, provisioning)

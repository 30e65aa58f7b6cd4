"""An estate on an ordinary day, and the files that go with it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from vgpuctl.files import Files, read_files
from vgpuctl.sim.files import profiles_text, timetable_text
from vgpuctl.sim.inventory import Inventory


def files_of(inventory: Inventory) -> Files:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "schedules").mkdir()
        (folder / "profiles.yaml").write_text(profiles_text(inventory))
        (folder / "schedules" / "day-night.yaml").write_text(timetable_text(inventory))
        return read_files(folder / "profiles.yaml", folder / "schedules")


def at_work(inventory: Inventory) -> Inventory:
    """The same estate on an ordinary day: provisioned, the first shift awake for long, pods on every node."""
    wanted = {worker: group.vgpus for group in inventory.groups for worker in group.workers}
    first = set(inventory.first_awake)
    vms = tuple(
        replace(vm, vgpus=wanted[vm.name], memory_locked=True, powered_on=vm.name in first) if vm.name in wanted else vm
        for vm in inventory.vms
    )
    return replace(inventory, vms=vms)

"""Writes the files in the folder of `sim up`: how to reach the servers, and profiles and shifts that fit
the inventory.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from vgpuctl.sim.environment import shell_lines
from vgpuctl.sim.folder import create_subfolder, new_file
from vgpuctl.sim.inventory import Inventory, Shift
from vgpuctl.sim.logins import Logins
from vgpuctl.sim.process import identity

PROFILES = """\
# Which vGPU profiles there are, and which worker VM carries which.
version: 1

# The node label that says what a worker carries; pods choose it with a nodeSelector.
label: vgpu.type

# A name of your own for each vSphere vGPU type. The name becomes the label's value.
profiles:
{profiles}

# VM names, or ranges of them. What is not named here is never touched.
workers:
{workers}
"""

DAY_NIGHT = """\
# Who is awake when. The workers of the other shifts sleep: drained and suspended.
version: 1
timezone: Europe/Berlin

shifts:
{shifts}

# How pods leave a node; the names are kubectl drain's.
drain:
  timeout: 10m
  force: false
  delete-emptydir-data: false
"""


CONFIG = """\
# The settings file of this laboratory. It sets nothing: the variables in the file env set all. They name this file, so
# that vgpuctl does not read ~/.config/vgpuctl/config.yaml, which may lead to other servers.
version: 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Everything needed to reach the two servers and their control."""

    vcenter_port: int
    kubernetes_port: int
    control_port: int
    logins: Logins
    control_token: str
    ca_pem: bytes


def write_all(folder: Path, inventory: Inventory, access: Access) -> None:
    """Write every file except the pid. The pid comes last, so a process that sees it finds the others."""
    schedules = create_subfolder(folder, "schedules")
    _write(folder / "ca.pem", access.ca_pem.decode())
    _write(folder / "kubeconfig", _kubeconfig(access), secret=True)
    _write(folder / "env", _env(folder, access), secret=True)
    _write(folder / "control.json", json.dumps(_control_document(access)), secret=True)
    _write(folder / "config.yaml", CONFIG)
    _write(folder / "profiles.yaml", profiles_text(inventory))
    _write(schedules / "day-night.yaml", timetable_text(inventory))


def write_pid(folder: Path) -> None:
    _write(folder / "pid", f"{os.getpid()}\n")


def _write(path: Path, text: str, *, secret: bool = False) -> None:
    """Write a file whole or not at all. A file with a password is readable by its owner alone from the first byte."""
    new = path.with_suffix(path.suffix + ".new")
    # Under a umask of 000 folders were open to all once, so modes do not depend on it.
    with os.fdopen(new_file(new, 0o600 if secret else 0o644), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)


def profiles_text(inventory: Inventory) -> str:
    profiles = [f"  {group.profile}:\n    vgpu: {_one_or_list(group.vgpus)}" for group in inventory.groups]
    workers = _by_name(inventory)
    if len({vm.vm_name or vm.name for vm in inventory.vms}) < len(inventory.vms):
        workers = _by_folder(inventory)
    return PROFILES.format(profiles="\n".join(profiles), workers="\n".join(workers))


def _by_name(inventory: Inventory) -> list[str]:
    vms = {vm.name: vm.vm_name or vm.name for vm in inventory.vms}
    lines = [
        f"  {pattern}: {group.profile}"
        for group in inventory.groups
        for pattern in _ranges(tuple(vms[worker] for worker in group.workers))
    ]
    return sorted(lines, key=lambda line: [int(n) for n in re.findall(r"\d+", line)[:1]])


def _by_folder(inventory: Inventory) -> list[str]:
    """Return entries that name each worker with its folder, because VMs of one name are in several folders."""
    datacenters = {host.name: host.datacenter for host in inventory.hosts}
    profiles = {worker: group.profile for group in inventory.groups for worker in group.workers}
    found: dict[tuple[str, str], list[str]] = {}
    for vm in inventory.vms:
        if vm.name in profiles:
            folder = f"/{datacenters[vm.host]}/vm/{vm.folder}".rstrip("/")
            found.setdefault((profiles[vm.name], folder), []).append(vm.vm_name or vm.name)
    return [
        f"  - {{profile: {profile}, folder: {json.dumps(folder)}, names: {json.dumps(_ranges(tuple(names)))}}}"
        for (profile, folder), names in found.items()
    ]


def timetable_text(inventory: Inventory) -> str:
    return DAY_NIGHT.format(shifts="\n".join(map(_shift_text, inventory.shifts)))


def _shift_text(shift: Shift) -> str:
    """Only the first shift, `day`, explains the fields of a cron line."""
    starts = f'    starts: "{shift.starts}"'
    if shift.name == "day":
        starts = f"{starts:<29}# standard cron: minute, hour, day, month, weekday"
    return f"  {shift.name}:\n{starts}\n    profiles: [{', '.join(shift.profiles)}]"


def _one_or_list(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def _ranges(names: tuple[str, ...]) -> list[str]:
    """Shorten worker-1 … worker-4 to `worker-[1-4]`. A name that does not end in a plain number is kept as it is."""
    runs: list[tuple[str, list[int]]] = []
    alone: list[str] = []
    for name in names:
        found = re.fullmatch(r"(.*?)(0|[1-9]\d*)", name)
        if not found:
            alone.append(name)
        elif runs and runs[-1][0] == found[1] and runs[-1][1][-1] == int(found[2]) - 1:
            runs[-1][1].append(int(found[2]))
        else:
            runs.append((found[1], [int(found[2])]))
    return [*(f"{stem}[{run[0]}-{run[-1]}]" if len(run) > 1 else f"{stem}{run[0]}" for stem, run in runs), *alone]


def _env(folder: Path, access: Access) -> str:
    values = {
        "GOVC_URL": f"https://127.0.0.1:{access.vcenter_port}/sdk",
        "GOVC_USERNAME": access.logins.user,
        "GOVC_PASSWORD": access.logins.password,
        "GOVC_TLS_CA_CERTS": str(folder / "ca.pem"),
        "KUBECONFIG": str(folder / "kubeconfig"),
        # A default flag of kubectl, such as --server, would send the token elsewhere.
        "KUBERC": "off",
        "VGPUCTL_CONFIG": str(folder / "config.yaml"),
        "VGPUCTL_PROFILES": str(folder / "profiles.yaml"),
        "VGPUCTL_SCHEDULES": str(folder / "schedules"),
        "VGPUCTL_SIM_DIR": str(folder),
    }
    return shell_lines(values)


def _kubeconfig(access: Access) -> str:
    import base64  # noqa: PLC0415

    ca = base64.b64encode(access.ca_pem).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "sim",
                "cluster": {
                    "server": f"https://127.0.0.1:{access.kubernetes_port}",
                    "certificate-authority-data": ca,
                },
            }
        ],
        "users": [{"name": "sim", "user": {"token": access.logins.token}}],
        "contexts": [{"name": "sim", "context": {"cluster": "sim", "user": "sim"}}],
        "current-context": "sim",
    }
    return json.dumps(document, indent=2) + "\n"


def _control_document(access: Access) -> dict[str, object]:
    return {
        "url": f"https://127.0.0.1:{access.control_port}",
        "token": access.control_token,
        "process": identity(),
        "readOnlyUser": {"user": access.logins.reader, "password": access.logins.readers_password},
        "operator": {"user": access.logins.operator, "password": access.logins.operators_password},
    }

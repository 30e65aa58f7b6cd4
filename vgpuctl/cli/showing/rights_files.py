"""Rights as text: YAML documents for kubectl, and govc commands. Comments say what each right is for."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vgpuctl.cli.sanitize import one_line
from vgpuctl.vsphere.rights import READ_ONLY, WORKER_ROLE, Place, Privilege, privileges

if TYPE_CHECKING:
    from vgpuctl.kube.manifests import Grant
    from vgpuctl.kube.rights import Right

WIDTH = 100


def manifest(grant: Grant) -> str:
    """Return the grant's objects as YAML documents, with a comment above each rule."""
    return "# What vgpuctl needs in Kubernetes, for kubectl apply -f -\n" + "".join(
        _document(found, rights) for found, rights in grant.objects()
    )


def _document(found: Mapping[str, Any], rights: list[Right]) -> str:
    from vgpuctl.cli.documents import as_yaml  # noqa: PLC0415

    head = as_yaml({key: value for key, value in found.items() if key != "rules"}) + "\n"
    return head + ("rules:\n" + "".join(map(_rule, rights)) if rights else "")


def _rule(right: Right) -> str:
    from vgpuctl.kube.manifests import comment, rule  # noqa: PLC0415

    parts = [f"{key}: {_flow(values)}" for key, values in rule(right).items()]
    return f"{comment_lines(comment(right))}- {parts[0]}\n" + "".join(f"  {part}\n" for part in parts[1:])


def _flow(values: list[str]) -> str:
    return "[" + ", ".join(value or '""' for value in values) + "]"


def comment_lines(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, WIDTH - 2, break_on_hyphens=False))


def govc_commands(user: str, paths: Mapping[Place, str], *, acts: bool, devices: bool) -> str:
    """Return the govc commands that grant the privileges.

    `acts`: the account may also change workers. `devices`: it may also change their vGPUs.
    """
    lines = [
        comment_lines("What vgpuctl needs in vCenter. Run these commands as an administrator, with your own paths.")
    ]
    if acts:
        needed = [each for each in privileges(Place.WORKERS, devices=devices) if not _is_reading(each)]
        lines.append(comment_lines("A role for the workers. vCenter adds System.View and System.Read to each role."))
        lines += [comment_lines(_said(each)) for each in needed]
        lines.append(" \\\n  ".join([f"govc role.create {WORKER_ROLE}", *(each.name for each in needed)]) + "\n")
    for place, path in paths.items():
        role = WORKER_ROLE if acts and place is Place.WORKERS else READ_ONLY
        read = [each for each in privileges(place) if _is_reading(each)]
        lines.append("\n" + comment_lines(f"On {place}, for the objects below it, too."))
        lines += [comment_lines(_said(each)) for each in read]
        words = ["govc", "permissions.set", "-principal", one_line(user), "-role", role, one_line(path)]
        lines.append(shlex.join(words) + "\n")
    return "".join(lines)


def _is_reading(privilege: Privilege) -> bool:
    return privilege.name.startswith("System.")


def _said(privilege: Privilege) -> str:
    inferred = " (inferred)" if privilege.inferred else ""
    return f"{privilege.name}{inferred}: {privilege.purpose}. Without it: {privilege.without}."

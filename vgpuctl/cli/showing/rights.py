"""vgpuctl rights …: the rights that vgpuctl needs, as files for the programs that grant them"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.cli import lazy
from vgpuctl.cli.common import print_json, showing_errors
from vgpuctl.cli.options import DebugOption
from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from vgpuctl.kube.manifests import Subject

app = lazy.group(add_completion=False, help="Print the rights that vgpuctl needs, for kubectl and govc.")


class RightsOutput(StrEnum):
    YAML = "yaml"
    JSON = "json"


OutputOption = Annotated[RightsOutput, typer.Option("--output", "-o", help="How to print the objects.")]
ScaleOption = Annotated[bool, typer.Option("--scale", help="Also the rights for timetables that scale workloads.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Also the right for timetables with on_stuck: force.")]
ClusterApiOption = Annotated[
    bool, typer.Option("--cluster-api", help="Also the rights for workers that Cluster API manages.")
]
ReadOnlyOption = Annotated[bool, typer.Option("--read-only", help="Only what status and history need.")]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        help="The namespace of vgpuctl's Lease and history. Default: $VGPUCTL_NAMESPACE, then vgpuctl.",
        show_default=False,
    ),
]
ServiceAccountOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAMESPACE:]NAME",
        help="Grant them to this ServiceAccount. Default: one in vgpuctl's namespace, named as its roles.",
        show_default=False,
    ),
]
UserOption = Annotated[
    list[str] | None, typer.Option("--user", metavar="NAME", help="Grant them to this user.", show_default=False)
]
GroupOption = Annotated[
    list[str] | None, typer.Option("--group", metavar="NAME", help="Grant them to this group.", show_default=False)
]


@app.command()
def kubernetes(
    scale: ScaleOption = False,
    force: ForceOption = False,
    cluster_api: ClusterApiOption = False,
    read_only: ReadOnlyOption = False,
    service_account: ServiceAccountOption = None,
    user: UserOption = None,
    group: GroupOption = None,
    namespace: NamespaceOption = None,
    output: OutputOption = RightsOutput.YAML,
    debug: DebugOption = False,
) -> None:
    """Print the namespace, roles and bindings that vgpuctl needs in Kubernetes.

    It asks no server. Name all accounts in one call: applying the output replaces the accounts of an earlier one.

    Examples:

      vgpuctl rights kubernetes | kubectl apply -f -
      vgpuctl rights kubernetes --scale --user ann --service-account vgpuctl
      vgpuctl rights kubernetes --read-only --group operators
    """
    with showing_errors(debug=debug):
        from vgpuctl.kube.manifests import Grant  # noqa: PLC0415
        from vgpuctl.kube.rights import OURS, Extra, rights  # noqa: PLC0415
        from vgpuctl.settings import Flags, kubernetes_settings  # noqa: PLC0415

        wanted = {Extra.SCALE: scale, Extra.FORCE: force, Extra.CLUSTER_API: cluster_api}
        extras = frozenset(extra for extra, asked in wanted.items() if asked)
        if read_only and extras - {Extra.SCALE}:
            raise UsageError("--read-only cannot be combined with --force or --cluster-api: they are rights to write.")
        own = kubernetes_settings(Flags(namespace=namespace)).namespace
        # Names of their own: read-only roles beside the daemon's must not replace them.
        name = f"{OURS}-read-only" if read_only else OURS
        grant = Grant(
            name=name,
            namespace=own,
            rights=rights(extras, read_only=read_only),
            subjects=_subjects(service_account or [], user or [], group or [], own, name),
        )
        if output is RightsOutput.JSON:
            print_json({"apiVersion": "v1", "kind": "List", "items": [found for found, _ in grant.objects()]})
            return
        from vgpuctl.cli.showing.rights_files import manifest  # noqa: PLC0415

        typer.echo(manifest(grant), nl=False)


WorkersOption = Annotated[str, typer.Option(metavar="PATH", help="The folder of the workers' VMs.")]
HostsOption = Annotated[str, typer.Option(metavar="PATH", help="The cluster of their hosts.")]
DatastoresOption = Annotated[str, typer.Option(metavar="PATH", help="Their datastore, or the folder of several.")]
SwitchOnlyOption = Annotated[
    bool, typer.Option("--switch-only", help="Without the privileges that provision and mode: replace need.")
]


@app.command()
def vcenter(
    user: Annotated[str, typer.Option(metavar="NAME", help="The user that gets the roles.")] = (
        "vgpuctl@vsphere.local"
    ),
    workers: WorkersOption = "/DATACENTER/vm/WORKERS",
    hosts: HostsOption = "/DATACENTER/host/CLUSTER",
    datastores: DatastoresOption = "/DATACENTER/datastore",
    switch_only: SwitchOnlyOption = False,
    read_only: ReadOnlyOption = False,
    debug: DebugOption = False,
) -> None:
    """Print the govc commands that create vgpuctl's role in vCenter and grant it on each object.

    It asks no server. Run the commands as an administrator of vCenter.

    Examples:

      vgpuctl rights vcenter --workers /dc-1/vm/gpu --hosts /dc-1/host/gpu > role.sh
      vgpuctl rights vcenter --switch-only
    """
    with showing_errors(debug=debug):
        from vgpuctl.cli.showing.rights_files import govc_commands  # noqa: PLC0415
        from vgpuctl.vsphere.rights import Place  # noqa: PLC0415

        if read_only and switch_only:
            raise UsageError("--read-only and --switch-only cannot be combined.")
        paths = {Place.WORKERS: workers, Place.HOSTS: hosts, Place.DATASTORES: datastores}
        typer.echo(govc_commands(user, paths, acts=not read_only, devices=not switch_only), nl=False)


def _subjects(accounts: list[str], users: list[str], groups: list[str], own: str, name: str) -> tuple[Subject, ...]:
    """Return the accounts that were named, or else a ServiceAccount in our own namespace."""
    from vgpuctl.kube.manifests import Subject  # noqa: PLC0415

    if not accounts and not users and not groups:
        accounts = [name]
    found = []
    for each in accounts:
        namespace, _, account = each.rpartition(":")
        found.append(Subject(kind="ServiceAccount", name=account, namespace=namespace or own))
    found += [Subject(kind="User", name=each) for each in users]
    found += [Subject(kind="Group", name=each) for each in groups]
    if not all(subject.name for subject in found):
        raise UsageError("An account has no name.")
    return tuple(found)

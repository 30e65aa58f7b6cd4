"""vgpuctl deploy"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl import __version__
from vgpuctl.cli.access import with_access
from vgpuctl.cli.common import print_json, showing_errors
from vgpuctl.cli.options import DebugOption
from vgpuctl.cli.showing.rights import ClusterApiOption, OutputOption, RightsOutput

if TYPE_CHECKING:
    from vgpuctl.settings import Flags

ReplicasOption = Annotated[int, typer.Option(min=0, max=9, help="How many daemons run. One leads, others stand by.")]
ImageOption = Annotated[str, typer.Option(metavar="IMAGE", help="The container image, by tag or by digest.")]
SecretOption = Annotated[
    str, typer.Option(metavar="NAME", help="The Secret with vCenter's password, under the key password.")
]
ApiPortOption = Annotated[
    int, typer.Option("--api-port", min=1, max=65535, help="The port of the API server itself, behind its Service.")
]
TrialOption = Annotated[
    bool, typer.Option("--dry-run", help="A daemon on trial: it says what it would do. Its account may write nothing.")
]
SystemdOption = Annotated[bool, typer.Option("--systemd", help="Print a systemd unit for a machine instead.")]


@with_access
def command(
    flags: Flags,
    replicas: ReplicasOption = 2,
    image: ImageOption = f"vgpuctl:{__version__}",
    secret: SecretOption = "vcenter",  # noqa: S107
    api_port: ApiPortOption = 6443,
    cluster_api: ClusterApiOption = False,
    dry_run: TrialOption = False,
    systemd: SystemdOption = False,
    output: OutputOption = RightsOutput.YAML,
    debug: DebugOption = False,
) -> None:
    """Print the manifests that run the daemon in Kubernetes, or a systemd unit.

    It asks no server. The profiles, the timetables and the settings are those that a command would use here. The
    account gets the rights that these timetables need. The password is not among them: a Secret holds it.

    Examples:

      vgpuctl deploy | kubectl apply -f -
      vgpuctl deploy --dry-run --image example.com/vgpuctl:1.0 > vgpuctl.yaml
      vgpuctl deploy --systemd > /etc/systemd/system/vgpuctl.service
    """
    with showing_errors(debug=debug):
        from vgpuctl.cli.showing.deployed_objects import Wanted, documents  # noqa: PLC0415
        from vgpuctl.cli.showing.systemd_unit import unit  # noqa: PLC0415

        if systemd:
            typer.echo(unit(dry_run=dry_run), nl=False)
            return
        wanted = Wanted(
            image=image, replicas=replicas, secret=secret, api_port=api_port, cluster_api=cluster_api, trial=dry_run
        )
        text, items = documents(flags, wanted)
        if output is RightsOutput.JSON:
            print_json({"apiVersion": "v1", "kind": "List", "items": items})
        else:
            typer.echo(text, nl=False)

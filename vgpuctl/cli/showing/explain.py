"""vgpuctl explain: what a code means, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vgpuctl.basics.nearest import nearest
from vgpuctl.cli.common import console, print_json, showing_errors
from vgpuctl.cli.options import DebugOption, Output, OutputOption
from vgpuctl.model.errors import UsageError

if TYPE_CHECKING:
    from vgpuctl.model.codes import Coded

CodesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="CODE", help="Codes such as VG301. Default: all codes.", show_default=False),
]


def command(codes: CodesArgument = None, output: OutputOption = Output.TABLE, debug: DebugOption = False) -> None:
    """Explain the codes of refusals and of ends: what each means, and what to do.

    It asks no server.

    Examples:

      vgpuctl explain VG301
      vgpuctl explain -o json
    """
    with showing_errors(debug=debug):
        kinds = _chosen(codes or [])
        if output is Output.JSON:
            print_json(_document(kinds))
            return
        out = console()
        for kind in kinds:
            out.print_labelled(kind.code, f"{kind.title}\n{kind.way_out}")


def _chosen(codes: list[str]) -> list[type[Coded]]:
    from vgpuctl.reporting.codes import table  # noqa: PLC0415

    known = table()
    wanted = [code.upper() for code in codes]
    for code in wanted:
        if code not in known:
            raise UsageError(f"There is no code {code}{nearest(code, known)}", hint="vgpuctl explain lists all codes.")
    return [known[code] for code in wanted or known]


def _document(kinds: list[type[Coded]]) -> dict[str, object]:
    codes = [{"code": kind.code, "title": kind.title, "wayOut": kind.way_out} for kind in kinds]
    return {"apiVersion": "vgpuctl.io/v1", "kind": "Codes", "codes": codes}

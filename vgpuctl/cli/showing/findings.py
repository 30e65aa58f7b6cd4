"""The findings of a check, for people and as a document."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vgpuctl.basics.phrases import count, first_names
from vgpuctl.cli.safe_console import SafeConsole
from vgpuctl.reporting.profiles_check import Compared, Finding, Severity

NAMES_SHOWN = 4
WIDTH = 80
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}


def show_findings(out: SafeConsole, compared: Compared, findings: Sequence[Finding]) -> None:
    """Show findings as compilers do, `file:line: error: …`, so that editors find the place; the remedy is below."""
    for finding in findings:
        place = f"{relative_place(finding.where)}: " if finding.where else ""
        subject = first_names(finding.workers, NAMES_SHOWN) or finding.about
        end = "" if finding.what.endswith("?") else "."
        text = f"{place}{finding.severity}: {subject}{': ' if subject else ''}{finding.what}{end}"
        out.print(_wrapped(text, "", "  "), style=_STYLES[finding.severity])
        for detail in finding.details:
            out.print(_wrapped(detail, "  ", "    "))
        out.print(_wrapped(finding.hint, "  → ", "    "))
    if findings:
        counted = Counter(finding.severity for finding in findings)
        counts = ", ".join(count(counted[severity], severity) for severity in Severity if counted[severity])
        out.print(f"\n{counts} in {_scope(compared)}", style="bold")
    else:
        out.print(f"No problems in {_scope(compared)}.")


def _wrapped(text: str, first: str, other: str) -> str:
    """Fold a text. Foreign words may be longer than a line; they stay whole, to be copied."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _scope(compared: Compared) -> str:
    fleet, catalogue = compared.fleet, compared.catalogue
    seen = [count(len(fleet.workers), "worker"), count(len(fleet.hosts), "host")] if fleet.hosts else []
    parts = [count(len(catalogue.profiles), "profile"), count(len(compared.timetables), "timetable"), *seen]
    return ", ".join(parts) + ("" if seen else "; vCenter was not asked")


def relative_place(where: str) -> str:
    """Return a path relative to the working folder, if the file is below it."""
    path, _, line = where.rpartition(":")
    found = Path(path).absolute()
    return f"{found.relative_to(Path.cwd())}:{line}" if found.is_relative_to(Path.cwd()) else where


def findings_document(compared: Compared, findings: Sequence[Finding]) -> dict[str, Any]:
    counted = Counter(finding.severity for finding in findings)
    return {
        "apiVersion": "vgpuctl.io/v1",
        "kind": "Check",
        "askedVcenter": bool(compared.fleet.hosts),
        "errors": counted[Severity.ERROR],
        "warnings": counted[Severity.WARNING],
        "findings": [_finding_document(finding) for finding in findings],
    }


def _finding_document(finding: Finding) -> dict[str, Any]:
    path, _, line = finding.where.rpartition(":")
    return {
        "severity": str(finding.severity),
        "kind": finding.kind,
        "file": path or None,
        "line": int(line) if line else None,
        "about": finding.about or None,
        "workers": list(finding.workers),
        "message": finding.what,
        "details": list(finding.details),
        "hint": finding.hint,
    }

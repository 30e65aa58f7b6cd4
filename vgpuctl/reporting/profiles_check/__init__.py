"""Checks whether the files fit what vCenter has, and reports everything that does not fit at once."""

from __future__ import annotations

from vgpuctl.reporting.profiles_check.entries import of_entries, of_profiles
from vgpuctl.reporting.profiles_check.finding import Compared, Finding, Severity, joined
from vgpuctl.reporting.profiles_check.hosts import of_hosts
from vgpuctl.reporting.profiles_check.shifts import of_shifts
from vgpuctl.reporting.profiles_check.types import of_types
from vgpuctl.reporting.profiles_check.workers import of_workers

__all__ = ["Compared", "Finding", "Severity", "check", "check_files"]


def check(compared: Compared) -> tuple[Finding, ...]:
    """Return all findings, errors first."""
    return joined(
        (
            *of_profiles(compared.catalogue),
            *of_entries(compared),
            *of_types(compared),
            *of_workers(compared),
            *of_hosts(compared),
            *of_shifts(compared),
        )
    )


def check_files(compared: Compared) -> tuple[Finding, ...]:
    """Return the findings that the files alone allow."""
    return joined(of_profiles(compared.catalogue))

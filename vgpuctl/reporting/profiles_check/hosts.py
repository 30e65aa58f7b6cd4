"""Hosts that cannot be used as they are."""

from __future__ import annotations

from collections.abc import Iterator

from vgpuctl.model.hosts import Host
from vgpuctl.planning.checks.workers import HostAway, why_unusable
from vgpuctl.reporting.profiles_check.finding import Compared, Finding, Severity


def of_hosts(compared: Compared) -> Iterator[Finding]:
    for host in compared.fleet.hosts.values():
        workers = [worker for worker in compared.fleet.on_host(host.name) if compared.wanted(worker)]
        if workers:
            yield from _away(host)
            yield from _unshared(host)


def _away(host: Host) -> Iterator[Finding]:
    if why := why_unusable(host):
        yield Finding(
            severity=Severity.ERROR,
            kind="host-away",
            about=host.name,
            what=f"{why}: none of its workers can start",
            hint=HostAway.way_out,
        )


def _unshared(host: Host) -> Iterator[Finding]:
    # vSphere: only a card of graphics type `sharedDirect` holds vGPUs.
    for card in host.unshared:
        yield Finding(
            severity=Severity.WARNING,
            kind="unshared-card",
            about=host.name,
            what=f"{card.model} {card.pci_id} is not sharedDirect, so it holds no vGPU",
            hint="Set it to Shared Direct in vCenter (host, Configure, Graphics), unless it has another use.",
        )

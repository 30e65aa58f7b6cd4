"""Which workers are meant: by names, ranges and globs, and by a selector over their nodes' labels."""

from __future__ import annotations

from dataclasses import dataclass

from vgpuctl.basics.names import Names, fold, is_glob, natural
from vgpuctl.basics.nearest import nearest
from vgpuctl.model.errors import UsageError
from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.selectors import Selector

_HINT = "Workers are the VMs that profiles.yaml names. See: vgpuctl status -o name"


@dataclass(frozen=True)
class Selection:
    """The workers that a command is about.

    `names`: None means every worker. `selector`: None asks nothing of the nodes.
    """

    names: Names | None = None
    selector: Selector | None = None

    @property
    def everything(self) -> bool:
        return self.names is None and self.selector is None

    def check(self, fleet: Fleet) -> None:
        """Raise UsageError for a name of no worker, or for a glob that matches none."""
        if self.names is None:
            return
        known = dict.fromkeys([*fleet.workers, *fleet.missing])
        if unknown := [name for name in self.names.plain if name not in known]:
            near = nearest(unknown[0], known) if len(unknown) == 1 else ""
            raise UsageError(f"There is no worker {' or '.join(fold(unknown))}{near or '.'}", hint=_HINT)
        for pattern in filter(is_glob, self.names.patterns):
            if not Names((pattern,)).of(known):
                raise UsageError(f"No worker is called {pattern}.", hint=_HINT)

    def of(self, fleet: Fleet) -> frozenset[str]:
        """Return the selected workers, also the ones missing from vCenter, unless the selector asks for nodes."""
        known = [*fleet.workers, *fleet.missing]
        meant = known if self.names is None else self.names.of(known)
        return frozenset(name for name in meant if self.selector is None or _matches(fleet, name, self.selector))


def workers_or_hosts(fleet: Fleet, names: Names) -> list[Worker]:
    """Return the workers of these names, and the workers that are now on hosts of these names.

    UsageError for a pattern that means neither. A worker goes before a host of the same name.
    """
    known = dict.fromkeys([*fleet.workers, *fleet.missing, *fleet.hosts])
    found: dict[str, Worker] = {}
    for pattern in dict.fromkeys([*names.plain, *filter(is_glob, names.patterns)]):
        meant = Names((pattern,))
        workers = [fleet.workers[name] for name in meant.of(fleet.workers)]
        hosts = meant.of(fleet.hosts) if not workers else []
        workers += [worker for host in hosts for worker in fleet.on_host(host)]
        if not workers:
            raise UsageError(_meaning_nothing(pattern, fleet, hosts, nearest(pattern, known)), hint=_HINT)
        found |= {worker.name: worker for worker in workers}
    return sorted(found.values(), key=lambda worker: natural(worker.name))


def _meaning_nothing(pattern: str, fleet: Fleet, hosts: list[str], near: str) -> str:
    if pattern in fleet.missing:
        return f"{pattern} is in profiles.yaml, but vCenter has no VM of this name."
    if hosts:
        return f"No worker is on {' or '.join(hosts)}."
    return f"No worker or host is called {pattern}{near or '.'}"


def _matches(fleet: Fleet, name: str, selector: Selector) -> bool:
    node = fleet.workers[name].node if name in fleet.workers else None
    return node is not None and selector.matches(node.labels)

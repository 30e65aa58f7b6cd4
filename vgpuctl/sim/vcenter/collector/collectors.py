"""Property collectors: their filters, and the wait for changes."""

from __future__ import annotations

import asyncio

from vgpuctl.sim.vcenter.collector.filters import Filter
from vgpuctl.sim.vcenter.inventory.center import Center
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.serialiser import Xml, element, reference, text
from vgpuctl.sim.vcenter.wire.vmomi import vmodl


class Collector:
    """Each answer has the next version. The last answer is kept in case the client did not receive it."""

    def __init__(self, center: Center) -> None:
        self.filters: dict[str, Filter] = {}
        self._version = 0
        self._last: tuple[str, Xml] | None = None
        self._wake: asyncio.Event | None = None
        self._canceled = False
        self._closed = False
        self._stop_listening = center.listen(self._on_change)

    def add(self, new: Filter) -> None:
        self.filters[new.ref._moId] = new
        self._wake_waiter()

    def remove(self, moid: str) -> None:
        self.filters.pop(moid, None)

    def close(self) -> None:
        """Close the collector for good. A wait that was requested but has not begun ends as well."""
        self._closed = True
        self._stop_listening()
        self.cancel()

    def cancel(self) -> None:
        """End the wait under way, if there is one."""
        self._canceled = self._wake is not None
        self._wake_waiter()

    async def wait(self, version: str, seconds: float | None, limit: int | None) -> Xml | None:
        # vSphere API: a version may be passed again, so a client can go on after a reply that it lost.
        if self._last and version and version == self._last[0]:
            return self._last[1]
        self._check_version(version)
        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        while not (answer := self._answer(limit)):
            if not await self._wait_for_change(deadline):
                return None
        self._last = (version, answer)
        return answer

    def _check_version(self, version: str) -> None:
        # vSphere API: an empty version begins anew.
        # vcsim 0.56 sends each object of a filter once, whatever the version (measured).
        if not version:
            self._last = None
            for each in self.filters.values():
                each.restart()
        # vSphere API: InvalidCollectorVersion. vcsim 0.56 takes a made-up version for the present one (measured).
        elif version != str(self._version):
            raise vmodl.query.InvalidCollectorVersion(msg="A specified version was not correct.")

    def _answer(self, limit: int | None) -> Xml | None:
        sets: list[Xml] = []
        truncated = False
        left = limit
        for each in self.filters.values():
            # vSphere API: `maxObjectUpdates` counts the objects over all filters.
            updates, more = each.drain(left)
            truncated = truncated or more
            left = None if left is None else left - len(updates)
            if updates:
                sets.append(element("filterSet", reference("filter", each.ref), *updates))
        if not sets:
            return None
        self._version += 1
        # vSphere API: `truncated` says that the next call goes on where this one stopped.
        closing = text("truncated", "true") if truncated else ""
        return element("returnval", text("version", str(self._version)), *sets, closing)

    async def _wait_for_change(self, deadline: float | None) -> bool:
        """Wait for a change; return False when the time is over. A second wait on the same collector ends the first."""
        if self._closed:
            raise faults.canceled()
        self.cancel()
        self._canceled = False
        self._wake = wake = asyncio.Event()
        try:
            async with asyncio.timeout_at(deadline):
                await wake.wait()
        except TimeoutError:
            # vSphere API: a wait that is over returns null, and the version stays valid.
            return False
        finally:
            superseded = self._wake is not wake
            if not superseded:
                self._wake = None
        # Measured with vcsim 0.56: a wait that CancelWaitForUpdates ends answers RequestCanceled.
        if superseded or self._canceled:
            raise faults.canceled()
        return True

    def _on_change(self, moid: str) -> None:
        concerned = [each for each in self.filters.values() if each.mark_changed(moid)]
        if concerned:
            self._wake_waiter()

    def _wake_waiter(self) -> None:
        if self._wake:
            self._wake.set()

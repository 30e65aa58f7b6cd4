"""vCenter's stream of changes: first everything that matters, then only changes, without polling."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from vgpuctl.basics.bounded import as_number
from vgpuctl.model.errors import PassingError
from vgpuctl.model.fleet import Task
from vgpuctl.model.hosts import Host
from vgpuctl.model.unreadable import Unreadable
from vgpuctl.vsphere import property_filters
from vgpuctl.vsphere.faults import garbled, translated
from vgpuctl.vsphere.inventory_cache import InventoryCache
from vgpuctl.vsphere.property_filters import ObservationScope
from vgpuctl.vsphere.session import Session
from vgpuctl.vsphere.views import Outline, Vm, moid_of
from vgpuctl.wire.follower import Follower

#: Far below the 30 minutes after which vCenter ends a session without calls.
WAIT_S = 60
OBJECTS_A_PAGE = 1000
#: How long a refresh may take, and how often it cancels the long call meanwhile.
REFRESH_WITHIN_S = 30.0
CANCEL_EVERY_S = 0.2
#: Why the stream is not heard while the files' new wish is fetched.
READ_ANEW = "it is read anew, because the files changed"
#: How often everything is fetched again because a change did not fit into what is known.
#: Decision 0010: instead of guessing where a change belongs.
MOST_REFETCHES = 3

ChooseVms = Callable[[list[Outline]], Iterable[Outline]]


class VcenterStream(Follower):
    """The VMs that matter, all hosts, and tasks. One thread writes; readers take copies under the lock."""

    def __init__(
        self, session: Session, choose: ChooseVms, scope: ObservationScope, on_change: Callable[[], None]
    ) -> None:
        super().__init__("vcenter-stream", on_change)
        self._session, self._choose, self._scope = session, choose, scope
        self._cache = InventoryCache()
        self._lock = threading.Lock()
        self._followed: set[str] = set()
        self._neighbours: set[str] = set()
        self._collector: Any = None
        self._outdated: Any = None
        self._version, self._reports = "", 0
        self._filters: set[str] = set()
        self._server_objects: tuple[Any, ...] = ()
        self._refreshes: queue.SimpleQueue[threading.Event] = queue.SimpleQueue()

    def fill(self) -> None:
        """Fetch the first, whole picture; raise if vCenter cannot be asked."""
        content, scope = self._session.content, self._scope
        with translated(self._session.settings.server):
            self._destroy_earlier(content)
            with self._lock:
                self._cache, self._version, self._reports = InventoryCache(), "", 0
                self._followed, self._neighbours, self._filters = set(), set(), set()
            # pyVmomi: one collector a thread. Its version belongs to the thread that waits.
            self._collector = content.propertyCollector.CreatePropertyCollector()
            self._server_objects = content, self._collector
            view, everything = property_filters.outlines(
                content.rootFolder, content.viewManager, scope, self._session.version
            )
            self._server_objects = content, self._collector, view
            self._create_filter(everything)
            self._fetch_updates(wait_s=0)
            self._follow_new_vms()
        with self._lock:
            # The scope may have changed meanwhile: then this picture is of the former one, and is fetched again.
            if scope is self._scope:
                self._mark_heard()

    def observe(self, scope: ObservationScope) -> None:
        """Fetch everything anew with this scope, in the same session. The stream is not heard until that is done."""
        with self._lock:
            self._scope, self._outdated = replace(scope), self._collector
            self.silence = READ_ANEW if self.heard else self.silence
            self.heard = False

    def await_heard(self) -> None:
        """Return once everything was fetched anew. PassingError if vCenter does not answer."""
        until_s = time.monotonic() + REFRESH_WITHIN_S
        while not self.heard:
            if self.silence not in {READ_ANEW, ""} or time.monotonic() >= until_s:
                raise PassingError(f"vCenter cannot be heard: {self.silence or 'it does not answer'}.")
            with suppress(Exception):
                # Only the former long call is cancelled, never the calls that fetch anew.
                self._outdated.CancelWaitForUpdates()
            time.sleep(CANCEL_EVERY_S)

    def _destroy_earlier(self, content: Any) -> None:
        """Destroy what an earlier fill made in the same session; otherwise vCenter keeps it until the session ends."""
        (login, *objects), self._server_objects = self._server_objects or (None,), ()
        with suppress(Exception):
            # vSphere: views, filters and collectors end with their session, so those of an earlier login are gone.
            for each in objects if login is content else ():
                each.Destroy()

    def refresh(self) -> None:
        """Ask once more without waiting, and return when the answer is in place. PassingError if vCenter does not
        answer.

        The listening thread asks, because the collector's version belongs to it. Its long call is cancelled for that.
        """
        if not self.following:
            with translated(self._session.settings.server):
                self._fetch_updates(wait_s=0)
                self._follow_new_vms()
            return
        answered = threading.Event()
        self._refreshes.put(answered)
        until_s = time.monotonic() + REFRESH_WITHIN_S
        while self.heard and time.monotonic() < until_s:
            # Cancel each time: the first cancel may have come before the long call.
            with suppress(Exception):
                # Decision 0019: the stream may wait for a minute, and what another instance did last must be seen now.
                self._collector.CancelWaitForUpdates()
            if answered.wait(CANCEL_EVERY_S):
                return
        raise PassingError(f"vCenter cannot be heard: {self.silence or 'it does not answer'}.")

    def vms(self) -> dict[str, Vm]:
        with self._lock:
            return self._cache.vms()

    def hosts(self) -> dict[str, Host]:
        with self._lock:
            return self._cache.hosts()

    def tasks(self) -> dict[str, tuple[Task, ...]]:
        with self._lock:
            return self._cache.tasks()

    def datastores(self) -> dict[str, int]:
        with self._lock:
            return self._cache.datastores()

    def unreadable_by_id(self) -> dict[str, Unreadable]:
        with self._lock:
            return self._cache.unreadable()

    def _follow_new_vms(self) -> bool:
        """Learn about VMs that matter since the last look.

        Some servers, such as vcsim, report only changes to a filter that is added later. They are asked for everything
        again.
        """
        if not self._add_filters():
            return False
        self._fetch_updates(wait_s=0)
        with self._lock:
            incomplete = self._cache.misses_details(self._followed)
        if incomplete:
            self._version = ""
            self._fetch_updates(wait_s=0)
        return True

    def _add_filters(self) -> bool:
        """Follow the VMs that matter since the last look, with one filter for all of them."""
        with self._lock:
            if not (self._cache.outlines_changed or self._scope.uuids):
                return False
            self._cache.outlines_changed = False
            full, neighbours = self._vms_to_follow()
            ours, others = ([self._cache.reference(moid) for moid in sorted(ids)] for ids in (full, neighbours))
        if ours:
            # Decision 0010: each change of power touches network cards, and vCenter would send all devices again.
            # With 128 suspends at once, reading them was three quarters of the stream's work.
            self._create_filter(property_filters.details(ours, self._scope), partial_updates=True)
        if others:
            self._create_filter(property_filters.neighbours(others))
        self._followed |= full
        self._neighbours |= neighbours
        return bool(ours or others)

    def _create_filter(self, spec: Any, *, partial_updates: bool = False) -> None:
        self._filters.add(moid_of(self._collector.CreateFilter(spec, partial_updates)))

    def _vms_to_follow(self) -> tuple[set[str], set[str]]:
        """Return the VMs to follow now: those that matter themselves, and those whose memory matters."""
        outlines = self._cache.outlines()
        known = {outline.moid for outline in outlines}
        chosen = {outline.moid for outline in self._choose(outlines)}
        # vSphere: a VM outside the plan may take a freed card, so VMs on cards matter as well.
        full = (chosen | self._cache.vms_on_cards()) & known
        hosts = {outline.host for outline in outlines if outline.moid in chosen} if self._scope.neighbours else set()
        hosts = self._cache.sharing_failover(hosts)
        neighbours = {outline.moid for outline in outlines if outline.host in hosts}
        return full - self._followed, neighbours - full - self._neighbours

    def _listen(self) -> None:
        if not self.heard:
            self._session.open()
            self.fill()
        else:
            with translated(self._session.settings.server):
                if not (self._answer_refreshes() or self._follow_new_vms()):
                    self._wait_for_changes()
        self._on_change()

    def _answer_refreshes(self) -> bool:
        waiting: list[threading.Event] = []
        with suppress(queue.Empty):
            while True:
                waiting.append(self._refreshes.get_nowait())
        if waiting:
            self._fetch_updates(wait_s=0)
            self._follow_new_vms()
        for each in waiting:
            each.set()
        return bool(waiting)

    def _wait_for_changes(self) -> None:
        from pyVmomi import vmodl  # noqa: PLC0415

        # vSphere: so ends a call that CancelWaitForUpdates cancels (compared with vcsim).
        with suppress(vmodl.fault.RequestCanceled):
            self._fetch_updates(wait_s=WAIT_S)

    def _fetch_updates(self, wait_s: int) -> None:
        from pyVmomi import vmodl  # noqa: PLC0415

        options = vmodl.query.PropertyCollector.WaitOptions(maxWaitSeconds=wait_s, maxObjectUpdates=OBJECTS_A_PAGE)
        truncated, refetches = True, 0
        while truncated:
            update = self._collector.WaitForUpdatesEx(self._version, options)
            # vSphere API, WaitForUpdatesEx: nothing is returned if nothing changed in time.
            if update is None and self._version:
                return
            self._check_is_next(update)
            # vSphere API, UpdateSet: `truncated` says that more of this change follows. Server policy may cut it, too.
            self._version, truncated = update.version, bool(update.truncated)
            with self._lock:
                for change in (change for part in update.filterSet for change in part.objectSet):
                    self._cache.apply(change)
                if self._cache.must_refetch:
                    # vSphere API, WaitForUpdatesEx: the empty version is the initial one.
                    self._cache.must_refetch, self._version, truncated = False, "", True
                    refetches += 1
            if refetches > MOST_REFETCHES:
                raise garbled(self._session.settings.server, "its changes do not fit its earlier reports")

    def _check_is_next(self, update: Any) -> None:
        """Raise if this is no report to this call: something in between repeated an earlier one, or mixed two up."""
        # vSphere API: the empty version asks for everything, and there is a root folder at least.
        if update is None:
            raise garbled(self._session.settings.server, "it reports nothing, and was asked for everything")
        # vCenter counts a collector's reports. vcsim does not: its versions are `-` and `P`, which are not compared.
        number = as_number(update.version or "")
        if 0 < number <= self._reports:
            raise garbled(self._session.settings.server, "its report goes back in time")
        # vSphere API, PropertyFilterUpdate: each part names its filter, and each fill makes new filters.
        if any(moid_of(part.filter) not in self._filters for part in update.filterSet):
            raise garbled(self._session.settings.server, "its report is one to another filter")
        self._reports = max(number, self._reports)

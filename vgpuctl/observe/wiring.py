"""Where vCenter and Kubernetes meet: keeps and joins their streams, and sends requests to the right server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from vgpuctl.basics.change import changed
from vgpuctl.engine.ports import BLIND_S, Answer, World
from vgpuctl.kube import actions as kube_actions
from vgpuctl.kube import notices
from vgpuctl.kube import permissions as kube_permissions
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client, NotAllowedError
from vgpuctl.kube.journal import Journal
from vgpuctl.kube.lazy_reflector import QUOTAS, ROLLOUTS, LazyReflector
from vgpuctl.kube.leadership import Leadership
from vgpuctl.kube.lease import ActingLease
from vgpuctl.kube.leases import Sighting
from vgpuctl.kube.ledger import LedgerMap, ReadLedger
from vgpuctl.kube.order_book import OrderBook
from vgpuctl.kube.reflector import Reflector
from vgpuctl.kube.stream import KubernetesStream
from vgpuctl.kube.whoami import author, whoami
from vgpuctl.model.drs import Drs
from vgpuctl.model.errors import VgpuctlError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.hold import Hold
from vgpuctl.model.hosts import TypeFacts
from vgpuctl.model.journal import Entry
from vgpuctl.model.notice import Notice
from vgpuctl.model.pods import Quota, Rollout
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.requests import (
    DeletePod,
    Evict,
    PatchMachine,
    PatchNode,
    PowerOffVm,
    Request,
    ScaleWorkload,
    ShutDownGuest,
    SuspendVm,
)
from vgpuctl.observe.fleet_builder import FleetBuilder
from vgpuctl.vsphere import actions as vsphere_actions
from vgpuctl.vsphere import clusters
from vgpuctl.vsphere import permissions as vcenter_permissions
from vgpuctl.vsphere.graphics import vgpu_types_of
from vgpuctl.vsphere.property_filters import ObservationScope
from vgpuctl.vsphere.session import Session, VcenterSettings
from vgpuctl.vsphere.stream import VcenterStream
from vgpuctl.vsphere.views import Outline
from vgpuctl.wire.follower import Follower
from vgpuctl.wire.retries import retry

Made = TypeVar("Made")
REFRESH_AGAIN_AFTER_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    vcenter: VcenterSettings
    kubernetes: KubernetesSettings
    lease_s: float = 15.0
    connect_s: float = 10.0
    blind_s: float = BLIND_S


def journal_of(settings: KubernetesSettings, unverified: Callable[[str], None]) -> Journal:
    """Return the journal for readers; it needs no vCenter.

    `unverified` is called with a server without a verified certificate.
    """
    client = Client(settings)
    if client.unverified:
        unverified(client.called)
    return Journal(client, settings.namespace)


def in_background(work: Callable[[], Made]) -> Future[Made]:
    """Run the work in a daemon thread, so that an interrupted command does not wait for a server that hangs."""
    done: Future[Made] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    # Python waits at its exit for all threads but daemons.
    threading.Thread(target=run, name="opening", daemon=True).start()
    return done


def send_request(client: Client, session: Session, request: Request) -> Answer:
    """Send a request to the server that it concerns. Before a VM stops, list the pods of its node once more."""
    match request:
        case PatchNode():
            return kube_actions.patch_node(client, request)
        case ScaleWorkload():
            return kube_actions.scale(client, request)
        case PatchMachine():
            return kube_actions.patch_machine(client, request)
        case Evict():
            return kube_actions.evict(client, request)
        case DeletePod():
            return kube_actions.delete(client, request)
        case SuspendVm(first=first) | ShutDownGuest(first=first) | PowerOffVm(first=first) if first is not None:
            # Kubernetes: a watch may lag, and a pod may have come to the node since.
            kube_actions.confirm(client, first)
    return vsphere_actions.send(session, request)


def _scope_for(catalogue: Catalogue, scope: ObservationScope) -> ObservationScope:
    """Return the scope with what choosing the workers takes."""
    # Decision 0010: of all VMs, vCenter is asked no more than that.
    return replace(scope, folders=catalogue.asks_folders, clusters=catalogue.asks_clusters, uuids=catalogue.asks_labels)


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def utc(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Connection:
    """Both servers: observed through their streams, and asked through their actions."""

    def __init__(self, settings: Settings, catalogue: Catalogue, scope: ObservationScope | None = None) -> None:
        """Prepare the connection. `scope`: what a command must know beyond what the catalogue asks for."""
        self._settings = settings
        self._builder = FleetBuilder(catalogue)
        self._listeners: list[Callable[[], None]] = []
        self._ledger_listeners: list[Callable[[], None]] = []
        self._last: Fleet | None = None
        self._name = ""
        self._session = Session(settings.vcenter)
        self._client = Client(settings.kubernetes)
        scope = scope or ObservationScope()
        on_change = self._kubernetes_changed
        self._kubernetes = KubernetesStream(self._client, on_change, drains=scope.drains, scales=scope.scales)
        self._ledger = LedgerMap(self._client, settings.kubernetes.namespace)
        self._first_fill: Future[None] | None = None
        self._last_ledger = ReadLedger()
        self._ledger_reflector = Reflector(self._client, self._ledger.kind, self._ledger_changed)
        self._quotas = LazyReflector(self._client, QUOTAS, self._changed)
        self._rollouts = LazyReflector(self._client, ROLLOUTS, self._changed)
        self._scope = _scope_for(catalogue, scope)
        self._vcenter = VcenterStream(self._session, self._possible_workers, self._scope, self._changed)
        self._types_known = False
        self._acting_lease_seen = Sighting()

    def open(self) -> Connection:
        """Take the first picture of both servers, at the same time unless node labels decide which VMs matter."""
        # Decision 0018: a session is kept over all tries, so that none is left behind at vCenter.
        login, ledger = in_background(self._session.open), in_background(self._ledger.read_once)
        if self._first_fill is None or self._first_fill.done():
            # A second try starts no new list while the first is still being read.
            self._first_fill = in_background(self._kubernetes.fill)
        login.result()
        if self._builder.catalogue.asks_labels:
            self._first_fill.result()
        self._vcenter.fill()
        self._learn_types()
        self._first_fill.result()
        self._last_ledger = self._ledger_if_allowed(ledger)
        return self

    def _ledger_if_allowed(self, ledger: Future[ReadLedger]) -> ReadLedger:
        """Return the ledger, or an empty one without the right to read it.

        It is read again before anything is written.
        """
        try:
            return ledger.result()
        except VgpuctlError as error:
            if error.passing:
                raise
        return ReadLedger()

    def _types_from_a_host(self) -> tuple[TypeFacts, ...]:
        """Ask one host, once, for facts of vGPU types that no name and no file gives.

        All hosts that offer a type say the same of it.
        """
        # vSphere 7.0.3: RetrieveVgpuProfileInfo. One host is enough, so the number of calls stays constant.
        wanted = self._builder.unknown_types(self._vcenter.vms().values())
        if self._scope.types:
            wanted |= {facts.vgpu for facts in self._builder.catalogue.type_facts}
        offering = {moid: len(wanted & set(host.offers)) for moid, host in self._vcenter.hosts().items()}
        best = max(offering, key=lambda moid: offering[moid], default="")
        return vgpu_types_of(self._session, best) if best and offering[best] else ()

    def _learn_types(self) -> None:
        self._builder.host_types = self._types_from_a_host()
        self._types_known = True

    def observe(self, catalogue: Catalogue, *, scales: bool) -> None:
        """Observe what these files ask for, once the streams are followed. PassingError if a server does not answer.

        What did not change is not asked again. The login stays.
        """
        if scales:
            self._kubernetes.follow_workloads()
        if catalogue != self._builder.catalogue:
            self._types_known = False
            self._builder.use(catalogue)
            # Decision 0018: refused logins lock accounts, so the same session goes on.
            self._scope = _scope_for(catalogue, self._scope)
            self._vcenter.observe(self._scope)
        if not self._types_known:
            self._vcenter.await_heard()
            self._learn_types()

    def _possible_workers(self, vms: list[Outline]) -> Iterable[Outline]:
        return self._builder.possible_workers(vms, self._kubernetes.nodes())

    def follow(self, *, ledger: bool = False) -> None:
        """Keep the picture true from now on. `ledger`: follow it too, for commands that run on.

        A switch reads it afresh before it writes.
        """
        self._vcenter.follow()
        self._kubernetes.follow()
        if ledger:
            self._ledger_reflector.follow()

    def refresh(self) -> None:
        """Ask both servers once more, at the same time. A server that cannot answer just now gets a little time."""
        # Decision 0019: another instance may have acted while the Lease was waited for.
        vcenter = in_background(lambda: retry(self._vcenter.refresh, REFRESH_AGAIN_AFTER_S))
        retry(self._kubernetes.refresh, REFRESH_AGAIN_AFTER_S)
        vcenter.result()

    def close(self) -> None:
        self._vcenter.close()
        self._kubernetes.close()
        self._ledger_reflector.close()
        self._quotas.close()
        self._rollouts.close()
        self._session.close()

    def acting_lease(self, *, gives_way: bool = False, purpose: str = "") -> ActingLease:
        """Return the acting Lease, not taken yet. `purpose`: what it is for, for people that are asked to wait."""
        namespace, lease_s = self._settings.kubernetes.namespace, self._settings.lease_s
        lease = ActingLease(self._client, namespace, lease_s, gives_way=gives_way, purpose=purpose)
        lease.sighting = self._acting_lease_seen
        return lease

    def leadership(self, say: Callable[[str], None]) -> Leadership:
        """Return this instance's part in leading, not started yet."""
        leadership = Leadership(self._client, self._settings.kubernetes.namespace, self._settings.lease_s, say)
        # A leader that dies leaves both Leases. The silence of the acting one counts while this daemon stands by:
        # otherwise it would be waited out after the leading one, and a switch would rest for twice the duration.
        leadership.look_beside = self.acting_lease().look
        return leadership

    def world(self, *, purpose: str = "") -> World:
        settings = self._settings.kubernetes
        lease = self.acting_lease(purpose=purpose)
        return World(
            observer=self,
            sender=self,
            lease=lease,
            clock=SystemClock(),
            ledger=self._ledger,
            journal=Journal(self._client, settings.namespace, lease.identity, author(settings)),
            blind_s=self._settings.blind_s,
        )

    def order_book(self) -> OrderBook:
        return OrderBook(self._client, self._settings.kubernetes.namespace)

    def history(self) -> list[Entry]:
        """Return earlier switches; none if they cannot be read, since no decision depends on them."""
        try:
            # Decision 0011: one list, and only a forecast reads it.
            return Journal(self._client, self._settings.kubernetes.namespace).entries()
        except VgpuctlError:
            return []

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        self._listeners.append(call)
        return lambda: self._listeners.remove(call)

    def _kubernetes_changed(self) -> None:
        if self._builder.catalogue.asks_labels:
            # Decision 0017: labels are learned from every event, because a node may be deleted before the next look.
            self._builder.learn(self._kubernetes.nodes())
        self._changed()

    def whoami(self) -> str:
        """Return the name by which the API server knows us. It is asked once."""
        if not self._name:
            self._name = retry(lambda: whoami(self._client), REFRESH_AGAIN_AFTER_S)
        return self._name

    def on_ledger(self, call: Callable[[], None]) -> None:
        """Call `call` (from any thread) after each change of the ledger, once it is followed."""
        self._ledger_listeners.append(call)

    def holds(self) -> dict[str, Hold]:
        """Return the holds on all nodes, by the node's name. It is cheap: no fleet is built for it."""
        return {node.name: node.hold for each in self._kubernetes.nodes() if (node := each.node).hold is not None}

    def _ledger_changed(self) -> None:
        self._changed()
        for call in tuple(self._ledger_listeners):
            call()

    @property
    def ledger(self) -> LedgerMap:
        return self._ledger

    def _changed(self) -> None:
        for call in tuple(self._listeners):
            call()

    def send(self, request: Request) -> Answer:
        """Send a request.

        If Machines may not be marked after all, they leave the picture, and their steps leave the plan.
        """
        try:
            return send_request(self._client, self._session, request)
        except NotAllowedError:
            if not isinstance(request, PatchMachine):
                raise
            # Decision 0014: a mark that may never be set is done without.
            self._kubernetes.without_machines()
            return Answer()

    def person(self) -> str:
        """Return the name by which the API server knows the person, for orders."""
        return whoami(self._client)

    def check(self, requests: Iterable[Request]) -> None:
        wanted = tuple(requests)
        retry(lambda: kube_permissions.check(self._client, wanted), REFRESH_AGAIN_AFTER_S)
        retry(lambda: vcenter_permissions.check(self._session, wanted), REFRESH_AGAIN_AFTER_S)

    def announce(self, found: Sequence[Notice]) -> None:
        notices.post(self._client, found)

    def fleet(self) -> Fleet:
        """Return the picture as it is; while a stream is not heard, the last whole picture, marked as stale."""
        if (silence := self.silent_streams()) and self._last is not None:
            # Decision 0018: an old picture that counts as true is the worst that a stream can deliver.
            return changed(self._last, stale=tuple(silence), silence=silence)
        built, ledger = self._builder.build(self._vcenter, self._kubernetes), self._current_ledger()
        fleet = changed(built.with_ledger(ledger.known), unreadable=(*built.unreadable, *ledger.unreadable))
        silence = self.silent_streams()
        if not silence:
            self._last = fleet
        return changed(self._last or fleet, stale=tuple(silence), silence=silence)

    def quotas(self, *, follow: bool) -> list[Quota] | None:
        """Return the quotas; None if they cannot be seen.

        They are no part of the fleet, since no decision depends on them.
        """
        return self._quotas.objects(follow=follow)

    def rollouts(self, *, follow: bool) -> list[Rollout]:
        """Return unfinished rollouts of DaemonSets; none if they cannot be seen."""
        return self._rollouts.objects(follow=follow) or []

    def host_types(self) -> tuple[TypeFacts, ...]:
        """Return what a host says of vGPU types, if one was asked."""
        return self._builder.host_types

    def drs(self) -> Drs:
        """Ask for DRS settings at once: they are no part of the picture."""
        return clusters.drs(self._session)

    def silent_streams(self) -> dict[str, str]:
        """Return the streams that are not heard, and why."""
        streams: dict[str, Follower | KubernetesStream] = {"vCenter": self._vcenter, "Kubernetes": self._kubernetes}
        return {name: stream.silence for name, stream in streams.items() if not stream.heard}

    def _current_ledger(self) -> ReadLedger:
        """Return the ledger as it was last heard."""
        if self._ledger_reflector.heard:
            self._last_ledger = next(iter(self._ledger_reflector.objects()), ReadLedger())
        return self._last_ledger

    @property
    def unverified(self) -> tuple[str, ...]:
        """Return the servers whose certificates are not verified."""
        vcenter = self._settings.vcenter
        found = ((f"vCenter {vcenter.server}", vcenter.unverified), (self._client.called, self._client.unverified))
        return tuple(name for name, unverified in found if unverified)

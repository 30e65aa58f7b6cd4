"""The orders of people in the cluster: read and written over Kubernetes alone, with the person's name."""

from __future__ import annotations

from collections.abc import Callable

from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client
from vgpuctl.kube.ledger import AGAIN_AFTER_S, LedgerMap
from vgpuctl.kube.whoami import whoami
from vgpuctl.model.ledger import Changes, Ledger
from vgpuctl.wire.retries import retry


class OrderBook:
    """What commands that give an order need of Kubernetes."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._ledger = client, LedgerMap(client, namespace)

    @classmethod
    def open(cls, settings: KubernetesSettings, unverified: Callable[[str], None]) -> OrderBook:
        """Return the book. `unverified` is called with a server without a verified certificate."""
        client = Client(settings)
        if client.unverified:
            unverified(client.called)
        return cls(client, settings.namespace)

    def read(self) -> Ledger:
        return self._ledger.read()

    def who(self) -> str:
        """Return the name by which the API server knows the person."""
        return retry(lambda: whoami(self._client), AGAIN_AFTER_S)

    def write(self, changes: Changes) -> None:
        self._ledger.write(changes)

"""The namespace of the Lease, the departures and the history. The first write into it makes it."""

from __future__ import annotations

from contextlib import suppress

from vgpuctl.kube.client import Client, NotAllowedError, NotFoundError, Object
from vgpuctl.model.errors import ChangedMeanwhileError


def create_in(client: Client, namespace: str, path: str, body: Object) -> Object:
    """Create an object of ours, and its namespace if that does not exist yet."""
    try:
        return client.post(path, body)
    except NotFoundError:
        # Kubernetes: of these kinds a POST answers 404 only if the namespace does not exist.
        _create(client, namespace)
        return client.post(path, body)


def _create(client: Client, namespace: str) -> None:
    try:
        # 409: another instance was quicker, which is just as well.
        with suppress(ChangedMeanwhileError):
            client.post(
                "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            )
    except NotAllowedError as error:
        raise NotAllowedError(
            f"The namespace {namespace} does not exist, and this account may not create it.",
            hint=f"kubectl create namespace {namespace}\n"
            f"With all rights: vgpuctl rights kubernetes -n {namespace} | kubectl apply -f -",
        ) from error

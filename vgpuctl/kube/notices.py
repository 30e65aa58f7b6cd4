"""Notices as Events, beside the work: nothing waits for them, and nothing fails with them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from vgpuctl.kube.client import Client
from vgpuctl.model.notice import Notice


def post(client: Client, notices: Sequence[Notice]) -> None:
    """Post the notices in the background. If the server refuses one, the rest are not sent."""
    if notices:
        threading.Thread(target=_post, args=(client, notices), name="notices", daemon=True).start()


def _post(client: Client, notices: Sequence[Notice]) -> None:
    for notice in notices:
        try:
            client.post(f"/api/v1/namespaces/{_namespace(notice)}/events", _event(notice))
        except Exception:
            # Without the right to create Events, there are no notices. A switch goes on (docs/reference/rights.md).
            return


def _namespace(notice: Notice) -> str:
    # Kubernetes: Events on objects without a namespace are in `default`; the API server refuses other places.
    return notice.subject.namespace or "default"


def _event(notice: Notice) -> dict[str, Any]:
    now, subject = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), notice.subject
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": "vgpuctl-", "namespace": _namespace(notice)},
        "involvedObject": {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            **({"namespace": subject.namespace} if subject.namespace else {}),
            "name": subject.name,
            "uid": subject.uid,
        },
        "type": "Warning" if notice.warning else "Normal",
        "reason": notice.reason,
        "message": notice.message,
        "source": {"component": "vgpuctl"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }

"""The name by which the API server knows us: one SelfSubjectReview."""

from __future__ import annotations

import getpass
import socket

from vgpuctl.basics.bounded import cut
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client, NotAllowedError, NotFoundError

_PATH = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
LONGEST_NAME = 256


def whoami(client: Client) -> str:
    """Return the user name that the server's authentication found; `user@machine` if the server does not say it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = client.post(_PATH, review)
    # Kubernetes: served since 1.28 to all authenticated users, by the ClusterRole system:basic-user.
    except (NotAllowedError, NotFoundError):
        answer = {}
    return _name_in(answer) or author(client.settings)


def author(settings: KubernetesSettings) -> str:
    """Return the acting party as this machine knows it: a person on a machine, or a pod."""
    machine = socket.gethostname()
    if settings.account:
        return f"pod {machine}"
    try:
        return f"{getpass.getuser()}@{machine}"
    except (OSError, KeyError):
        return machine


def _name_in(answer: object) -> str:
    """Return the name in a review. A name is shown to people, so it is one line of bounded length."""
    for key in ("status", "userInfo", "username"):
        answer = answer.get(key) if isinstance(answer, dict) else None
    return cut(" ".join(answer.split()) if isinstance(answer, str) else "", LONGEST_NAME)

"""Which cluster: a kubeconfig and context in the usual order, or a pod's own account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from vgpuctl.kube.access import KubernetesSettings, ServiceAccount
from vgpuctl.settings.environment import secrets
from vgpuctl.settings.said import Source, first
from vgpuctl.wire.replies import Bounds

#: The folder where every pod finds its account.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def kubernetes(sources: Sequence[Source], env: Mapping[str, str], account: Path, bounds: Bounds) -> KubernetesSettings:
    """Return the cluster settings.

    In a pod without a kubeconfig, the pod's account is used. The namespace is the same everywhere: a daemon in a pod
    and a laptop must find each other's Lease.
    """
    kubeconfig, context, namespace = (first(sources, name) for name in ("kubeconfig", "context", "namespace"))
    usual = _usual(env)
    pod = None
    if not kubeconfig and not context and not usual.exists():
        pod = _pod(env, account)
    return KubernetesSettings(
        kubeconfig=kubeconfig.value if kubeconfig else str(usual),
        context=context.value if context else None,
        account=pod,
        namespace=namespace.value if namespace else KubernetesSettings().namespace,
        bounds=bounds,
        withheld=secrets(env),
    )


def _usual(env: Mapping[str, str]) -> Path:
    return (Path(env["HOME"]) if env.get("HOME") else Path.home()) / ".kube" / "config"


def _pod(env: Mapping[str, str], folder: Path) -> ServiceAccount | None:
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    return ServiceAccount(folder=folder, host=host, port=port) if host and port else None

"""Which cluster: a kubeconfig and context in the usual order, or a pod's own account."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from vgpuctl.kube.access import KubernetesSettings, ServiceAccount
from vgpuctl.model.errors import UsageError
from vgpuctl.settings.environment import secrets
from vgpuctl.settings.values import SettingValue, Source, first_setting
from vgpuctl.wire.replies import Bounds

#: The folder where every pod finds its account.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: Kubernetes: a namespace's name is an RFC 1123 label.
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def kubernetes(sources: Sequence[Source], env: Mapping[str, str], account: Path, bounds: Bounds) -> KubernetesSettings:
    """Return the cluster settings.

    In a pod without a kubeconfig, the pod's account is used. The namespace is the same everywhere: a daemon in a pod
    and a laptop must find each other's Lease.
    """
    kubeconfig, context, namespace = (first_setting(sources, name) for name in ("kubeconfig", "context", "namespace"))
    default_path = _default_path(env)
    service_account = None
    # As for kubectl: a kubeconfig, named or in its usual place, counts before the pod's account.
    if not kubeconfig and not context and not default_path.exists():
        service_account = _service_account(env, account)
    return KubernetesSettings(
        kubeconfig=kubeconfig.value if kubeconfig else str(default_path),
        context=context.value if context else None,
        account=service_account,
        # Decision 0004: not the pod's own namespace, or a laptop and a daemon would hold two Leases.
        namespace=_namespace(namespace) if namespace else KubernetesSettings().namespace,
        bounds=bounds,
        withheld=secrets(env),
    )


def _namespace(setting: SettingValue) -> str:
    """Return a valid name. Messages show it inside commands to paste."""
    if not _NAMESPACE.fullmatch(setting.value):
        raise UsageError(
            f"{setting.origin} must be a namespace: at most 63 lower-case letters, digits and '-' between them."
        )
    return setting.value


def _default_path(env: Mapping[str, str]) -> Path:
    return (Path(env["HOME"]) if env.get("HOME") else Path.home()) / ".kube" / "config"


def _service_account(env: Mapping[str, str], folder: Path) -> ServiceAccount | None:
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    return ServiceAccount(folder=folder, host=host, port=port) if host and port else None

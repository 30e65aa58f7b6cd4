"""The way to a cluster: a kubeconfig and one of its contexts, or a pod's own account."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgpuctl.model.errors import UnreachableError, UsageError
from vgpuctl.model.nearest import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """What Kubernetes gives each pod: a folder with token, CA and namespace, and the API server's address."""

    folder: Path
    host: str
    port: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSettings:
    """`kubeconfig` may be a list, which is merged. With an account, it is not looked at."""

    kubeconfig: str = "~/.kube/config"
    context: str | None = None
    namespace: str = "kube-system"
    account: ServiceAccount | None = None


def configuration(settings: KubernetesSettings) -> Any:
    """The official client's configuration. Its own errors may quote a user with its token: they go no further."""
    from kubernetes.client.configuration import Configuration  # noqa: PLC0415
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from yaml import YAMLError  # noqa: PLC0415

    found = Configuration()
    # The library's own default is http://localhost, and a token would go there in clear.
    found.host = ""
    hint = "Is this a pod with a service account?" if settings.account else "kubectl config view shows what is in it."
    where = str(settings.account.folder) if settings.account else settings.kubeconfig
    wrong = UnreachableError if settings.account else UsageError
    try:
        _load(settings, found)
    except (ConfigException, OSError) as error:
        why = str(error).partition("/{")[0].rstrip(".")
        raise wrong(f"{where} cannot be used: {why}.", hint=hint) from None
    except (YAMLError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise wrong(f"{where} is no kubeconfig: {type(error).__name__}.", hint=hint) from None
    if not found.host:
        raise wrong(f"{where} names no server for the cluster of its context.", hint=hint)
    # Settled now. Else the library looks through the whole environment again for each request.
    found.proxy = found.proxy
    return found


def _load(settings: KubernetesSettings, into: Any) -> None:
    if settings.account:
        _load_account(settings.account, into)
        return
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415

    _must_exist(settings.kubeconfig)
    merged = KubeConfigMerger(settings.kubeconfig)
    context = _context(settings, merged)
    KubeConfigLoader(merged.config, active_context=context, config_persister=merged.save_changes).load_and_set(into)


def _load_account(account: ServiceAccount, into: Any) -> None:
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415

    InClusterConfigLoader(
        token_filename=str(account.folder / "token"),
        cert_filename=str(account.folder / "ca.crt"),
        environ={"KUBERNETES_SERVICE_HOST": account.host, "KUBERNETES_SERVICE_PORT": account.port},
    ).load_and_set(into)


def _must_exist(kubeconfig: str) -> None:
    """Of a list, one file must be there, as for kubectl."""
    paths = [Path(path).expanduser() for path in kubeconfig.split(os.pathsep) if path]
    if not any(path.exists() for path in paths):
        raise UsageError(
            f"There is no kubeconfig {', '.join(map(str, paths))}.",
            hint="Give --kubeconfig FILE, set KUBECONFIG or VGPUCTL_KUBECONFIG, or write kubeconfig: into the settings "
            "file. To try it without a cluster: vgpuctl sim up",
        )


def _context(settings: KubernetesSettings, merged: Any) -> str | None:
    """Of several files, the first that names a current context decides, as for kubectl; the library takes the last."""
    files = merged.config_files.values()
    current = (file.get("current-context") for file in files)
    wanted = settings.context or next(filter(None, current), None)
    names = [str(context.get("name")) for file in files for context in file.get("contexts") or ()]
    known = f"Known: {', '.join(names)}." if names else None
    if wanted is None:
        raise UsageError(f"{settings.kubeconfig} has no current context; give --context.", hint=known)
    if wanted not in names:
        raise UsageError(
            f"There is no context {wanted} in {settings.kubeconfig}{nearest(wanted, names) or '.'}",
            hint=known,
        )
    return wanted

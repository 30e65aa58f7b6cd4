"""The way to a cluster: a kubeconfig and one of its contexts, or a pod's own account."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vgpuctl.basics.nearest import nearest
from vgpuctl.kube import address, programs
from vgpuctl.kube.tls import Tls
from vgpuctl.model.errors import UnreachableError, UsageError
from vgpuctl.wire.replies import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """What Kubernetes gives each pod: a folder with its token, CA and namespace, and the API server's address."""

    folder: Path
    host: str
    port: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSettings:
    """Which cluster to use, and how.

    `kubeconfig` may be a list of files, which are merged. With an `account`, no kubeconfig is read. `withheld` names
    variables of our environment that exec plugins do not get.
    """

    kubeconfig: str = "~/.kube/config"
    context: str | None = None
    # Decision 0004: the same for every instance. Instances with other ones would hold two Leases.
    namespace: str = "vgpuctl"
    account: ServiceAccount | None = None
    bounds: Bounds = field(default_factory=Bounds)
    withheld: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Access:
    """The official client's configuration, and the TLS settings of its connections."""

    configuration: Any
    tls: Tls

    @property
    def server(self) -> str:
        return str(self.configuration.host)

    @property
    def unverified(self) -> bool:
        return self.server.startswith("https:") and not self.tls.verify


def read_access(settings: KubernetesSettings) -> Access:
    """Return the way to the cluster.

    The official client's own errors may quote a user with its token, so they are replaced by ours.
    """
    from kubernetes.config import ConfigException  # noqa: PLC0415
    from yaml import YAMLError  # noqa: PLC0415

    hint = "Does this pod have a service account?" if settings.account else "kubectl config view shows its contents."
    where = str(settings.account.folder) if settings.account else settings.kubeconfig
    error_class = UnreachableError if settings.account else UsageError
    try:
        access = _read(settings, where)
    except (ConfigException, OSError) as error:
        # Official client: its merger calls an entry `path/{the whole entry}`, token included.
        why = str(error).partition("/{")[0].rstrip(".")
        raise error_class(f"{where} cannot be used: {why}.", hint=hint) from None
    except (YAMLError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise error_class(f"{where} is not a kubeconfig: {type(error).__name__}.", hint=hint) from None
    if not access.server:
        raise error_class(f"{where} has no server for the cluster of its context.", hint=hint)
    # Fail now, before a command waits for anything.
    access.tls.context()
    return access


def _read(settings: KubernetesSettings, where: str) -> Access:
    """Read the credentials. The files that the official client writes meanwhile are deleted at once."""
    from kubernetes.client.configuration import Configuration  # noqa: PLC0415

    configuration = Configuration()
    # The library's default is http://localhost: a token would go there in clear.
    configuration.host = ""
    # Decision 0018: the client's copies of keys stayed as long as the process, and for ever after SIGKILL.
    with TemporaryDirectory(prefix="vgpuctl-") as folder:
        if settings.account:
            _load_account(settings.account, configuration)
        else:
            _load_kubeconfig(settings, configuration, folder)
        tls = Tls.of(configuration, Path(folder), where)
    return Access(configuration, tls)


def _load_kubeconfig(settings: KubernetesSettings, configuration: Any, folder: str) -> None:
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415

    _must_exist(settings.kubeconfig)
    # Official client 37.0.2: `load_config()` with KUBECONFIG=a:b falls through to the pod's account.
    # It also reads that variable at import. Its merger has neither fault.
    merged = KubeConfigMerger(settings.kubeconfig)
    context = _context(settings, merged)
    cluster, user = _chosen(merged, context)
    server = str(cluster.get("server") or "")
    if server:
        # Decision 0018: checked before the loader, which runs exec plugins to get a token.
        address.check(server, user, cluster.get("proxy-url"), settings.kubeconfig)
    programs.withhold_variables(user, settings.withheld)
    KubeConfigLoader(
        merged.config, active_context=context, config_persister=merged.save_changes, temp_file_path=folder
    ).load_and_set(configuration)
    programs.reread_token(user, configuration)
    _set_address_and_proxy(configuration, server, own_proxy="proxy-url" in cluster)


def _chosen(merged: Any, context: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the cluster and the user of a context, as the kubeconfig has them."""
    chosen = merged.config["contexts"].get_with_name(context)["context"]
    cluster = merged.config["clusters"].get_with_name(chosen["cluster"])["cluster"].value
    users = merged.config.safe_get("users")
    user = chosen.safe_get("user") and users and merged.config["users"].get_with_name(chosen["user"], safe=True)
    return cluster, (user["user"].value if user else {})


def _set_address_and_proxy(configuration: Any, server: str, *, own_proxy: bool) -> None:
    """Set the address and the proxy for all requests.

    Without this the library searches the whole environment again for each request. As in kubectl, a proxy from the
    environment is not used for this machine itself.
    """
    if server and "://" not in server:
        configuration.host = f"http://{configuration.host}"
    url = address.parts(server)
    # Go's ProxyFromEnvironment, which kubectl uses, knows no proxy for localhost and loopback addresses.
    is_local = url is not None and address.is_loopback(url.hostname or "")
    # Official client 37: once a proxy is assigned, the environment is not searched again.
    # Measured (decision 0015): that search took 0.15 of the 1.25 ms of a patch.
    configuration.proxy = None if is_local and not own_proxy else configuration.proxy


def _load_account(account: ServiceAccount, configuration: Any) -> None:
    from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415

    InClusterConfigLoader(
        token_filename=str(account.folder / "token"),
        cert_filename=str(account.folder / "ca.crt"),
        environ={"KUBERNETES_SERVICE_HOST": account.host, "KUBERNETES_SERVICE_PORT": account.port},
    ).load_and_set(configuration)
    # Assigned to itself, so that the environment is not searched again (as for a kubeconfig).
    configuration.proxy = configuration.proxy


def _must_exist(kubeconfig: str) -> None:
    """Refuse a kubeconfig list if none of its files exists, as kubectl does."""
    paths = [Path(path).expanduser() for path in kubeconfig.split(os.pathsep) if path]
    if not any(path.exists() for path in paths):
        raise UsageError(
            f"There is no kubeconfig {', '.join(map(str, paths))}.",
            hint="Give --kubeconfig FILE, set KUBECONFIG or VGPUCTL_KUBECONFIG, or write kubeconfig: into the settings "
            "file. To try vgpuctl without a cluster: vgpuctl sim up",
        )


def _context(settings: KubernetesSettings, merged: Any) -> str | None:
    """Return the context to use.

    Of several files, the first with a current context decides, as in kubectl. The library would take the last.
    """
    files = merged.config_files.values()
    current = (file.get("current-context") for file in files)
    context_name = settings.context or next(filter(None, current), None)
    names = [str(context.get("name")) for file in files for context in file.get("contexts") or ()]
    known = f"Known: {', '.join(names)}." if names else None
    if context_name is None:
        raise UsageError(f"{settings.kubeconfig} has no current context. Choose one with --context.", hint=known)
    if context_name not in names:
        raise UsageError(
            f"{settings.kubeconfig} has no context {context_name}{nearest(context_name, names) or '.'}",
            hint=known,
        )
    return context_name

"""Environment variables around a laboratory: those that lead to its servers, those that could lead elsewhere, and those
that every process needs.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

#: Variables that could lead vgpuctl, govc or kubectl elsewhere: another address, login, trust or proxy, or the name of
#: something that is not in the laboratory. The file `env` unsets each of them that it does not set. The simulators
#: import nothing of the product; tests/simulators/test_surroundings.py compares this list with the product's own.
FOREIGN_VARIABLES = (
    "VGPUCTL_VCENTER VGPUCTL_VCENTER_USER VGPUCTL_PASSWORD VGPUCTL_PASSWORD_FILE VGPUCTL_KEYRING VGPUCTL_THUMBPRINT "
    "VGPUCTL_CA_FILE VGPUCTL_INSECURE VGPUCTL_KUBECONFIG VGPUCTL_CONTEXT VGPUCTL_NAMESPACE VGPUCTL_PROFILES "
    "VGPUCTL_SCHEDULES VGPUCTL_LEASE_SECONDS VGPUCTL_CONNECT_SECONDS VGPUCTL_CALL_SECONDS "
    "VGPUCTL_BLIND_SECONDS VGPUCTL_REPLY_MIB VGPUCTL_CONFIG",
    "GOVC_URL GOVC_USERNAME GOVC_PASSWORD GOVC_TLS_CA_CERTS GOVC_TLS_KNOWN_HOSTS GOVC_INSECURE GOVC_CERTIFICATE "
    "GOVC_PRIVATE_KEY GOVC_VIM_NAMESPACE GOVC_VIM_VERSION GOVC_DATACENTER GOVC_DATASTORE GOVC_CLUSTER GOVC_HOST "
    "GOVC_RESOURCE_POOL GOVC_FOLDER GOVC_NETWORK GOVC_VM",
    "VSPHERE_SERVER VSPHERE_USER VSPHERE_USERNAME VSPHERE_PASSWORD VSPHERE_TLS_THUMBPRINT VSPHERE_ALLOW_UNVERIFIED_SSL",
    "VMWARE_HOST VMWARE_PORT VMWARE_USER VMWARE_PASSWORD VMWARE_VALIDATE_CERTS",
    "KUBECONFIG KUBERC KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT",
    "HTTPS_PROXY https_proxy HTTP_PROXY http_proxy ALL_PROXY all_proxy NO_PROXY no_proxy",
)

#: What a process needs to run and to print. It gets nothing else: an allow-list, because a list of the variables that
#: hold servers and passwords would never be complete.
NEEDED_VARIABLES = {
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"),
}
NEEDED_PREFIXES = ("LC_", "PYTHON")


def needed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name in NEEDED_VARIABLES or name.startswith(NEEDED_PREFIXES)
    }


def shell_lines(lab_variables: Mapping[str, str]) -> str:
    """Return lines for sh, bash and zsh. Every variable that could lead elsewhere is unset first."""
    # Decision 0016: with only GOVC_* and KUBECONFIG set, the demo once acted on production.
    unset = [" ".join(name for name in line.split() if name not in lab_variables) for line in FOREIGN_VARIABLES]
    exports = [f"export {name}={shlex.quote(value)}" for name, value in lab_variables.items()]
    return "\n".join([*(f"unset {names}" for names in unset if names), *exports, ""])


def parse_exports(lines: str) -> dict[str, str]:
    """Return the variables that such lines set."""
    return dict(word.split("=", 1) for word in shlex.split(lines) if "=" in word)

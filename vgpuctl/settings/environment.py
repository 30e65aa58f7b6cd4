"""The environment: our own variables, and the usual ones of govc, Terraform, Cluster API and Ansible."""

from __future__ import annotations

from collections.abc import Mapping

from vgpuctl.settings.values import LISTENING, NAMES, SIZES, TIMES, SettingValue, Source, is_true, variable

Env = Mapping[str, str]

#: Our environment may hold a password; a flag or the file never does.
PASSWORD = "password"  # noqa: S105

#: Each family is used as a whole, in this order. Of two variables with one meaning, the first set one counts.
#: Decision 0008: taken one by one, the password of one vCenter would be sent to another.
FAMILIES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "GOVC_*": {
        "vcenter": ("GOVC_URL",),
        "vcenter-user": ("GOVC_USERNAME",),
        PASSWORD: ("GOVC_PASSWORD",),
        "ca-file": ("GOVC_TLS_CA_CERTS",),
        "known-hosts": ("GOVC_TLS_KNOWN_HOSTS",),
        "insecure": ("GOVC_INSECURE",),
    },
    "VSPHERE_*": {
        "vcenter": ("VSPHERE_SERVER",),
        # Terraform says VSPHERE_USER, Cluster API's provider VSPHERE_USERNAME.
        "vcenter-user": ("VSPHERE_USER", "VSPHERE_USERNAME"),
        PASSWORD: ("VSPHERE_PASSWORD",),
        "thumbprint": ("VSPHERE_TLS_THUMBPRINT",),
        "insecure": ("VSPHERE_ALLOW_UNVERIFIED_SSL",),
    },
    "VMWARE_*": {
        "vcenter": ("VMWARE_HOST",),
        "port": ("VMWARE_PORT",),
        "vcenter-user": ("VMWARE_USER",),
        PASSWORD: ("VMWARE_PASSWORD",),
        "verify": ("VMWARE_VALIDATE_CERTS",),
    },
}


def own(env: Env) -> Source:
    return _read(env, {name: (variable(name),) for name in (*NAMES, *TIMES, *SIZES, *LISTENING, PASSWORD)})


def secrets(env: Env) -> frozenset[str]:
    """Return the variables that hold a vCenter password, or hold an address that may contain one."""
    every = [{name: (variable(name),) for name in ("vcenter", PASSWORD)}, *FAMILIES.values()]
    # govc: GOVC_URL may hold user and password.
    passwords = {each for names in every for each in names[PASSWORD]}
    addresses = {each for names in every for each in names["vcenter"]}
    return frozenset(passwords & env.keys() | {name for name in addresses & env.keys() if "@" in env[name]})


def kubernetes(env: Env) -> Source:
    return _read(env, {"kubeconfig": ("KUBECONFIG",)})


def families(env: Env) -> list[Source]:
    """Return the families with any variable set, in order."""
    read = (_in_our_names(_read(env, names)) for names in FAMILIES.values())
    return [source for source in read if source]


def _read(env: Env, names: Mapping[str, tuple[str, ...]]) -> dict[str, SettingValue]:
    found = ((name, next((v for v in variables if env.get(v)), None)) for name, variables in names.items())
    return {name: SettingValue(env[variable], variable) for name, variable in found if variable}


def _in_our_names(source: dict[str, SettingValue]) -> Source:
    """Rename Ansible's settings: it has a separate port, and `validate` where others have `insecure`."""
    port, verify = source.pop("port", None), source.pop("verify", None)
    host = source.get("vcenter")
    if port and host:
        source["vcenter"] = SettingValue(f"{host.value}:{port.value}", f"{host.origin} and {port.origin}")
    if verify:
        source["insecure"] = SettingValue("no" if is_true(verify) else "yes", verify.origin)
    return source

"""A password is planted wherever one may stand; no command that fails repeats it, not even with --debug."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.lab import Lab
from tests.support.said import CANARY, secret

NOWHERE = "127.0.0.1:1"

#: What goes wrong → (words, variables, exit code). {home} is a folder, {host} the lab's vCenter.
FAILURES: dict[str, tuple[str, dict[str, str], int]] = {
    "wrong password": ("", {"GOVC_PASSWORD": CANARY}, 5),
    "wrong password in the url": (
        "",
        {"GOVC_URL": f"a:{CANARY}@{{host}}", "GOVC_USERNAME": "", "GOVC_PASSWORD": ""},
        5,
    ),
    "wrong password in a file": ("--password-file {home}/pw", {}, 5),
    "password file open to others": ("--password-file {home}/open", {}, 2),
    "password in --vcenter": (f"--vcenter https://alice:{CANARY}@{{host}}", {}, 2),
    "password in a broken --vcenter": (f"--vcenter https://alice:{CANARY}/@{{host}}", {}, 2),
    "password in the settings file": ("--config {home}/config.yaml", {}, 2),
    "settings file that is no YAML": ("--config {home}/broken.yaml", {}, 2),
    "another certificate": (f"--thumbprint {'ab' * 32}", {"GOVC_PASSWORD": CANARY}, 5),
    "no trusted certificate": ("", {"GOVC_TLS_CA_CERTS": "", "GOVC_PASSWORD": CANARY}, 5),
    "no server": ("", {"GOVC_URL": NOWHERE, "GOVC_PASSWORD": CANARY, "VGPUCTL_CONNECT_SECONDS": "0.1"}, 5),
    "another vcenter": ("--vcenter vc.example.com", {"GOVC_PASSWORD": CANARY}, 2),
    "a kubeconfig that lacks a server": ("--kubeconfig {home}/kubeconfig", {}, 2),
    "a context that is not there": ("--context none", {"VGPUCTL_PASSWORD": CANARY, "GOVC_PASSWORD": CANARY}, 2),
}
KUBECONFIG = f"""
clusters: [{{name: a, cluster: {{}}}}]
users: [{{name: a, user: {{token: {CANARY}}}}}]
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
current-context: a
"""


@pytest.mark.parametrize("debug", [False, True], ids=["plain", "debug"])
@pytest.mark.parametrize("failure", FAILURES)
def test_no_failing_command_prints_a_password(failure: str, debug: bool, by_day: Lab, tmp_path: Path) -> None:
    words, variables, code = FAILURES[failure]
    secret(tmp_path / "pw")
    secret(tmp_path / "open", mode=0o644)
    secret(tmp_path / "config.yaml", f"version: 1\npassword: {CANARY}\n")
    secret(tmp_path / "broken.yaml", f'version: 1\nvcenter: "alice:{CANARY}@vc\n')
    secret(tmp_path / "kubeconfig", KUBECONFIG)
    filled = {"home": str(tmp_path), "host": urlsplit(by_day.env["GOVC_URL"]).netloc}
    by_day.more_env = {name: value.format(**filled) for name, value in variables.items()}
    ran = by_day.vgpuctl("status", *words.format(**filled).split(), *(["--debug"] if debug else []))
    assert ran.code == (1 if debug else code), ran.err
    assert ("Traceback" in ran.err) is debug
    assert CANARY not in ran.out + ran.err

"""What lets us into Kubernetes goes to nobody else: not in clear, not to programs, not into files that stay."""

from __future__ import annotations

import json
import os
import ssl
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.support.said import CANARY, govc
from tests.support.wire import Wire, answer, saying
from vgpuctl.kube import programs
from vgpuctl.kube.access import KubernetesSettings, ServiceAccount, read_access
from vgpuctl.kube.client import Client
from vgpuctl.model.errors import PassingError, UsageError, VgpuctlError
from vgpuctl.settings import Flags, settings

TOKEN = {"token": CANARY}
PASSWORD = {"username": "joe", "password": CANARY}
CERTIFICATE = {"client-certificate": "/none.crt", "client-key": "/none.key"}


def kubeconfig(folder: Path, server: str, user: Any, **cluster: Any) -> KubernetesSettings:
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "me", "user": user}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return KubernetesSettings(kubeconfig=str(path))


def plugin(folder: Path, does: str = "", **more: Any) -> dict[str, Any]:
    """An exec plugin that does this, and then gives a token."""
    script = folder / "plugin.py"
    status = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": CANARY}}
    script.write_text(f"import json, os, pathlib\n{does}\nprint(json.dumps({status!r}))")
    command = {"apiVersion": status["apiVersion"], "command": sys.executable, "args": [str(script)]}
    return {"exec": command | more}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


FAR = [
    "http://10.0.0.1:6443",
    "http://kubernetes.example.com",
    "HTTP://10.0.0.1",
    "10.0.0.1:8080",
    "http://127.0.0.1.example",
]
NEAR = ["http://127.0.0.1:8001", "http://127.8.9.1", "http://[::1]:8001", "http://localhost:8080", "localhost:8080"]


@pytest.mark.parametrize("server", FAR)
@pytest.mark.parametrize("user", [TOKEN, PASSWORD, {"tokenFile": "/none"}], ids=["token", "password", "token file"])
def test_nothing_that_lets_us_in_leaves_this_machine_in_clear(server: str, user: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="would send a token or password unencrypted to") as told:
        Client(kubeconfig(tmp_path, server, user))
    assert "Use https://" in str(told.value.hint)


@pytest.mark.parametrize("server", NEAR)
def test_on_this_machine_it_may(server: str, tmp_path: Path) -> None:
    assert read_access(kubeconfig(tmp_path, server, TOKEN)).server == (
        server if "://" in server else f"http://{server}"
    )


def test_without_anything_that_lets_us_in_there_is_nothing_to_lose(tmp_path: Path) -> None:
    assert read_access(kubeconfig(tmp_path, "http://10.0.0.1", {})).server == "http://10.0.0.1"
    assert read_access(kubeconfig(tmp_path, "http://10.0.0.1", CERTIFICATE)).server == "http://10.0.0.1"


def test_a_plugin_is_not_even_asked_for_a_token_that_would_go_in_clear(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with pytest.raises(UsageError, match="unencrypted"):
        read_access(kubeconfig(tmp_path, "http://10.0.0.1", plugin(tmp_path, f"pathlib.Path({str(ran)!r}).touch()")))
    assert not ran.exists()


def test_a_proxy_elsewhere_would_see_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over TLS it sees nothing. A proxy of the environment is not meant for this machine, as for kubectl."""
    far = {"proxy-url": "http://proxy.example.com:3128"}
    with pytest.raises(UsageError, match="unencrypted"):
        read_access(kubeconfig(tmp_path, "http://127.0.0.1:8001", TOKEN, **far))
    assert read_access(kubeconfig(tmp_path, "https://10.0.0.1", TOKEN, **far)).configuration.proxy == far["proxy-url"]
    monkeypatch.setenv("http_proxy", far["proxy-url"])
    monkeypatch.setenv("https_proxy", far["proxy-url"])
    assert read_access(kubeconfig(tmp_path, "http://127.0.0.1:8001", TOKEN)).configuration.proxy is None
    assert read_access(kubeconfig(tmp_path, "https://localhost:6443", TOKEN)).configuration.proxy is None
    assert read_access(kubeconfig(tmp_path, "https://10.0.0.1", TOKEN)).configuration.proxy == far["proxy-url"]


@pytest.mark.parametrize("who", [f"joe:{CANARY}", CANARY, f":{CANARY}", f"{CANARY}:"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_address_that_holds_a_secret_is_refused_and_not_repeated(scheme: str, who: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="contains a user or password") as told:
        Client(kubeconfig(tmp_path, f"{scheme}://{who}@127.0.0.1:1/k8s", {}))
    assert CANARY not in f"{told.value} {told.value.hint} {told.value.__cause__} {told.value.__context__}"


@pytest.mark.parametrize("server", ["ftp://x", "https://", "https://[::1", "https://x:port", "://"])
def test_an_address_that_is_none_is_refused(server: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_access(kubeconfig(tmp_path, server, TOKEN))


# Certificates and keys


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def served(authority: trustme.CA) -> ssl.SSLContext:
    """It lets in whoever has a certificate of the same authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def data(authority: trustme.CA) -> tuple[dict[str, str], dict[str, str]]:
    """Of a cluster and a user, everything inside the kubeconfig."""
    mine = authority.issue_cert("me@example.com")
    ca, certificate, key = (
        b64encode(each).decode()
        for each in (authority.cert_pem.bytes(), mine.cert_chain_pems[0].bytes(), mine.private_key_pem.bytes())
    )
    return {"certificate-authority-data": ca}, {"client-certificate-data": certificate, "client-key-data": key}


@pytest.fixture
def wire(authority: trustme.CA) -> Iterator[Wire]:
    with Wire(saying(answer(b"{}", "200 OK", "Connection: close")), tls=served(authority)) as wire:
        yield wire


def test_no_key_of_a_kubeconfig_stays_in_a_file(
    wire: Wire, authority: trustme.CA, tmp_path: Path, temporary: Path
) -> None:
    """They stayed after SIGHUP and SIGKILL."""
    cluster, user = data(authority)
    client = Client(kubeconfig(tmp_path, wire.url, user, **cluster))
    assert list(temporary.iterdir()) == []
    assert client.get("/first") == client.get("/second") == {}
    assert list(temporary.iterdir()) == []


def test_a_plugin_may_give_a_certificate(wire: Wire, authority: trustme.CA, tmp_path: Path, temporary: Path) -> None:
    cluster, _ = data(authority)
    mine = authority.issue_cert("me@example.com")
    given = plugin(tmp_path)
    script = Path(given["exec"]["args"][0])
    keys = {
        "clientCertificateData": mine.cert_chain_pems[0].bytes().decode(),
        "clientKeyData": mine.private_key_pem.bytes().decode(),
    }
    script.write_text(script.read_text().replace(repr({"token": CANARY}), repr(keys)))
    assert Client(kubeconfig(tmp_path, wire.url, given, **cluster)).get("/") == {}
    assert list(temporary.iterdir()) == []


def test_certificates_that_people_renew_are_taken_up(wire: Wire, authority: trustme.CA, tmp_path: Path) -> None:
    """As before, when each connection read its files: a daemon outlives its certificate."""
    names = {"client-certificate": "crt", "client-key": "key"}
    files = {what: str(tmp_path / name) for what, name in names.items()}

    def write(leaf: trustme.LeafCert) -> None:
        leaf.cert_chain_pems[0].write_to_path(files["client-certificate"])
        leaf.private_key_pem.write_to_path(files["client-key"])

    write(trustme.CA().issue_cert("stranger@example.com"))
    cluster, _ = data(authority)
    client = Client(kubeconfig(tmp_path, wire.url, files, **cluster))
    with pytest.raises(VgpuctlError):
        client.get("/")
    write(authority.issue_cert("me@example.com"))
    assert client.get("/") == {}
    Path(files["client-key"]).write_text("half")
    assert client.get("/") == {}


@pytest.mark.parametrize("part", ["certificate-authority-data", "client-certificate-data", "client-key-data"])
def test_a_certificate_that_is_none_is_said_before_anything_is_sent(
    part: str, authority: trustme.CA, tmp_path: Path
) -> None:
    cluster, user = data(authority)
    broken = {part: b64encode(CANARY.encode()).decode()}
    cluster |= {name: value for name, value in broken.items() if name in cluster}
    user |= {name: value for name, value in broken.items() if name in user}
    with pytest.raises(UsageError, match="A certificate or key of") as told:
        Client(kubeconfig(tmp_path, "https://127.0.0.1:1", user, **cluster))
    assert CANARY not in f"{told.value} {told.value.hint}"


def test_a_server_that_nobody_verifies_is_known_as_such(tmp_path: Path) -> None:
    skip = {"insecure-skip-tls-verify": True}
    found = [
        Client(kubeconfig(tmp_path, server, {}, **more)).unverified
        for server, more in (("https://a", skip), ("https://a", {}), ("http://a", skip))
    ]
    assert found == [True, False, False]


# Programs and tokens


def test_an_exec_plugin_gets_no_password_of_vcenter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is another's program."""
    secrets = {
        "VGPUCTL_PASSWORD": CANARY,
        "VSPHERE_PASSWORD": CANARY,
        "VMWARE_PASSWORD": CANARY,
        **govc(url=f"https://alice:{CANARY}@one.example.com"),
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    seen = tmp_path / "seen"
    user = plugin(tmp_path, f"pathlib.Path({str(seen)!r}).write_text(json.dumps(dict(os.environ)))", env=[OWN])
    path = kubeconfig(tmp_path, "https://127.0.0.1:1", user).kubeconfig
    found = settings(Flags(vcenter="one.example.com", kubeconfig=path)).kubernetes
    assert read_access(found).configuration.api_key == {"BearerToken": f"Bearer {CANARY}"}
    environment = json.loads(seen.read_text())
    assert CANARY not in json.dumps(environment)
    assert environment["PATH"] == os.environ["PATH"]
    assert environment["GOVC_USERNAME"] == "alice"
    assert environment[OWN["name"]] == "its own"


OWN = {"name": "VMWARE_PASSWORD", "value": "its own"}


def test_a_provider_that_runs_a_program_of_old_is_refused(tmp_path: Path) -> None:
    provider = {"name": "gcp", "config": {"cmd-path": str(tmp_path / "gcloud")}}
    with pytest.raises(UsageError, match="auth-provider gcp runs a program"):
        read_access(kubeconfig(tmp_path, "https://127.0.0.1:1", {"auth-provider": provider}))


@pytest.fixture
def minutes_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "REREAD_AFTER_S", 0.0)


def token_sent(client: Client, wire: Wire) -> str:
    client.get("/")
    (line,) = (line for line in wire.asked[-1].split(b"\r\n") if line.lower().startswith(b"authorization:"))
    return line.split()[-1].decode()


@pytest.mark.usefixtures("minutes_pass")
def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    """While it cannot be, as in the moment of its renewal, the last token is used."""
    file = tmp_path / "token"
    file.write_text("first\n")
    with Wire(saying(answer(b"{}"))) as wire:
        client = Client(kubeconfig(tmp_path, wire.url, {"tokenFile": str(file)}))
        assert token_sent(client, wire) == "first"
        file.write_text("second")
        assert token_sent(client, wire) == "second"
        file.write_text("")
        assert token_sent(client, wire) == "second"
        file.unlink()
        assert token_sent(client, wire) == "second"
        file.write_text("third")
        assert token_sent(client, wire) == "third"


def test_the_token_of_a_pods_account_is_read_again(authority: trustme.CA, tmp_path: Path) -> None:
    """By the official library itself. While it cannot, that is a server that may answer later."""
    (tmp_path / "token").write_text("first")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with Wire(saying(answer(b"{}")), tls=context) as wire:
        account = ServiceAccount(folder=tmp_path, host="127.0.0.1", port=str(wire.port))
        client = Client(KubernetesSettings(account=account))
        assert token_sent(client, wire) == "first"
        (tmp_path / "token").write_text("second")
        _a_minute_later(client)
        assert token_sent(client, wire) == "second"
        (tmp_path / "token").write_text("")
        _a_minute_later(client)
        with pytest.raises(PassingError, match="cannot be read again: ConfigException"):
            client.get("/")


def _a_minute_later(client: Client) -> None:
    """The library keeps the time in a loader that only its hook knows."""
    (loader,) = (
        cell.cell_contents
        for cell in client._configuration.refresh_api_key_hook.__closure__
        if hasattr(cell.cell_contents, "token_expires_at")
    )
    loader.token_expires_at = loader.token_expires_at.fromtimestamp(time.time() - 1)

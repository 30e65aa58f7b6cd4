"""What a server sends is bounded, in size and in time, whichever of the two it is."""

from __future__ import annotations

import gzip
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim, vmodl

from tests.support.wire import Script, Wire, answer, dripping, endless, saying, self_signed
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client
from vgpuctl.model.errors import PassingError, RequestFailedError, UnreachableError, VgpuctlError
from vgpuctl.vsphere.faults import translated
from vgpuctl.vsphere.stub import Stub
from vgpuctl.wire.replies import Bounds

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SHORT, SMALL = Bounds(call_s=0.2), Bounds(reply_mib=1)
BOMB = answer(gzip.compress(b" " * (3 << 20)), "200 OK", "Content-Encoding: gzip")


def kubernetes(wire: Wire, folder: Path, bounds: Bounds = SMALL) -> Client:
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": {"server": wire.url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "me", "user": {"token": "canary-token"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return Client(KubernetesSettings(kubeconfig=str(path), bounds=bounds))


def vcenter(wire: Wire, bounds: Bounds = SMALL) -> Stub:
    trust = ssl._create_unverified_context()
    return Stub("vc:443", bounds, host="127.0.0.1", port=wire.port, version="vim.version.version9", sslContext=trust)


@dataclass
class Asked:
    """One call to one of the servers."""

    of: str
    call: Callable[[Wire, Path, Bounds], Any]

    def __repr__(self) -> str:
        return self.of


def content(wire: Wire, bounds: Bounds = SMALL) -> Any:
    with translated("vc:443"):
        return vim.ServiceInstance("ServiceInstance", vcenter(wire, bounds)).RetrieveContent()


BOTH = [
    Asked("Kubernetes", lambda wire, folder, bounds: kubernetes(wire, folder, bounds).get("/api/v1/nodes")),
    Asked("vCenter", lambda wire, _, bounds: content(wire, bounds)),
]

SLOW = {
    "a byte of the status now and then": dripping(b"", b"H"),
    "a byte of a header now and then": dripping(HEAD, b"x"),
    "a byte of the body now and then": dripping(HEAD + b"Content-Length: 99999\r\n\r\n", b" "),
    "a byte of a chunk's size now and then": dripping(CHUNKED, b"0"),
    "small chunks without an end": dripping(CHUNKED, b"1\r\n \r\n"),
    "nothing": dripping(b"", b""),
}
LARGE = {
    "a body without an end": endless(HEAD + b"\r\n", b" " * (1 << 16)),
    "chunks without an end": endless(CHUNKED, b"10000\r\n" + b" " * (1 << 16) + b"\r\n"),
    "headers without an end": endless(HEAD, b"x: " + b"y" * 65000 + b"\r\n"),
    "a length of a hundred gigabytes": saying(HEAD + b"Content-Length: 99999999999\r\n\r\n"),
    "a chunk of a terabyte": saying(CHUNKED + b"FFFFFFFFFF\r\n"),
    "what unpacks to three times as much": saying(BOMB),
}


@pytest.mark.parametrize("asked", BOTH, ids=repr)
@pytest.mark.parametrize("how", SLOW)
def test_a_call_ends_in_time_however_slowly_it_is_answered(how: str, asked: Asked, tmp_path: Path) -> None:
    with Wire(SLOW[how], tls=self_signed()) as wire, pytest.raises(PassingError) as told:
        asked.call(wire, tmp_path, SHORT)
    assert asked.of in told.value.message
    assert "did not finish its reply within 0.2 s" in told.value.message


@pytest.mark.parametrize("asked", BOTH, ids=repr)
@pytest.mark.parametrize("how", LARGE)
def test_a_reply_is_given_up_once_it_is_larger_than_allowed(how: str, asked: Asked, tmp_path: Path) -> None:
    with Wire(LARGE[how], tls=self_signed()) as wire, pytest.raises(UnreachableError) as told:
        asked.call(wire, tmp_path, SMALL)
    assert asked.of in told.value.message
    assert how == "headers without an end" or "more than 1 MiB" in told.value.message


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_a_reply_within_the_bounds_is_read_packed_or_plain(packed: bool, tmp_path: Path) -> None:
    body = json.dumps({"items": ["x" * 1000] * 500}).encode()
    reply = answer(gzip.compress(body), "200 OK", "Content-Encoding: gzip") if packed else answer(body)
    with Wire(saying(reply)) as wire:
        client = kubernetes(wire, tmp_path)
        assert client.get("/first") == client.get("/second") == json.loads(body)
        assert len(wire.asked) == 2


def test_vcenters_packed_reply_is_read_too() -> None:
    soap = answer(gzip.compress(_soap("<RetrieveServiceContentResponse/>")), "200 OK", "Content-Encoding: gzip")
    with Wire(saying(soap), tls=self_signed()) as wire:
        assert content(wire) is None
        assert b"Accept-Encoding: gzip\r\n" in wire.asked[0]


@pytest.mark.parametrize("answered", ["CancelWaitForUpdatesResponse", "RetrieveServiceContent", "LoginResponse"])
def test_a_reply_to_another_call_is_none(answered: str) -> None:
    """An empty one would pass for `nothing has changed`."""
    with Wire(saying(answer(_soap(f"<{answered}/>"))), tls=self_signed()) as wire:
        with pytest.raises(PassingError, match="its reply is not one to RetrieveServiceContent"):
            content(wire)
        assert len(wire.asked) == 1


def test_of_an_error_its_status_counts_however_long_its_page_is(tmp_path: Path) -> None:
    page = endless(b"HTTP/1.1 503 Busy\r\n\r\n", b"<html>" * 10_000)
    with Wire(page) as wire, pytest.raises(PassingError, match="cannot answer just now: HTTP 503"):
        kubernetes(wire, tmp_path).get("/api/v1/nodes")


GARBLED = {
    "an HTML page": answer(b"<html>Sign in</html>"),
    "a list instead of an object": answer(b"[]"),
    "null": answer(b"null"),
    "nothing": answer(b""),
    "brackets without an end": answer(b"[" * 200_000),
    "a packing that nobody asked for": answer(b"x", "200 OK", "Content-Encoding: br"),
}


@pytest.mark.parametrize("how", GARBLED)
@pytest.mark.parametrize("method", ["get", "post", "put", "metadata"])
def test_what_is_no_kubernetes_may_be_one_later(method: str, how: str, tmp_path: Path) -> None:
    with Wire(saying(GARBLED[how])) as wire, pytest.raises(PassingError):
        body: tuple[dict[str, Any], ...] = () if method in {"get", "metadata"} else ({},)
        getattr(kubernetes(wire, tmp_path), method)("/api/v1/pods", *body)


@pytest.mark.parametrize("item", ["null", "{}", '{"metadata": null}', "7"])
def test_a_list_of_things_that_are_no_objects_is_none(item: str, tmp_path: Path) -> None:
    with Wire(saying(answer(b'{"items": [%s]}' % item.encode()))) as wire, pytest.raises(PassingError, match="but not"):
        kubernetes(wire, tmp_path).metadata("/api/v1/pods")


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_token_is_not_carried_to_where_a_server_points(status: str, tmp_path: Path) -> None:
    with Wire(saying(answer(b"{}"))) as other, Wire(saying(answer(b"", status, f"Location: {other.url}/x"))) as wire:
        with pytest.raises(PassingError, match="answers, but not as Kubernetes does: it redirects us"):
            kubernetes(wire, tmp_path).get("/api/v1/nodes")
        assert (len(wire.asked), other.asked) == (1, [])


UNREADABLE: dict[str, Script] = {
    "cut in its middle": saying(answer(_CUT := b'<?xml version="1.0"?><a><b')),
    "an HTML page": saying(answer(b"<html><body>Sign in<br></body></html>")),
    "no XML": saying(answer(b"{}")),
    "nothing": saying(answer(b"")),
    "a type that nobody knows": saying(answer(b"<x/>", "500 Oops")),
}


@pytest.mark.parametrize("how", UNREADABLE)
def test_what_is_no_vcenter_may_be_one_later(how: str) -> None:
    with (
        Wire(UNREADABLE[how], tls=self_signed()) as wire,
        pytest.raises(PassingError, match="vCenter vc:443 answers, but not as a vCenter does"),
    ):
        content(wire)


def test_our_own_mistake_is_not_blamed_on_vcenter() -> None:
    with Wire(saying(answer(b"")), tls=self_signed()) as wire:
        stub = vcenter(wire)
        vm = vim.VirtualMachine("vm-1", stub)
        with pytest.raises(AttributeError), translated("vc:443"):
            stub.InvokeMethod(vm, vm._GetMethodInfo("Rename"), (object(),))
        assert wire.asked == []


def test_a_long_poll_has_its_own_time_besides() -> None:
    reply = answer(_soap("<WaitForUpdatesExResponse/>"))

    def later(wire: Wire, connection: Any, _: bytes) -> None:
        wire.ended.wait(0.5)
        connection.sendall(reply)

    options = vmodl.query.PropertyCollector.WaitOptions(maxWaitSeconds=1)
    with Wire(later, tls=self_signed()) as wire:
        collector = vmodl.query.PropertyCollector("collector", vcenter(wire, SHORT))
        assert collector.WaitForUpdatesEx("", options) is None
        with pytest.raises(VgpuctlError, match="did not finish its reply"):
            collector.WaitForUpdatesEx("", None)


def test_a_fault_of_vcenter_is_still_a_fault() -> None:
    fault = _soap(
        "<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>not found</faultstring><detail>"
        '<NotFoundFault xmlns="urn:vim25" xsi:type="NotFound"/></detail></soapenv:Fault>'
    )
    with (
        Wire(saying(answer(fault, "500 Internal Server Error")), tls=self_signed()) as wire,
        pytest.raises(RequestFailedError, match="not found"),
    ):
        content(wire)


def _soap(body: str) -> bytes:
    soap, xsi = "http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2001/XMLSchema-instance"
    names = f'xmlns:soapenv="{soap}" xmlns:xsi="{xsi}"'
    return f"<soapenv:Envelope {names}><soapenv:Body>{body}</soapenv:Body></soapenv:Envelope>".encode()

"""A pinned certificate is asked for on every connection, before a byte of ours is sent."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from tests.support.impostor import Impostor
from tests.support.lab import Lab
from vgpuctl.model.errors import UnreachableError
from vgpuctl.vsphere.session import Session, VcenterSettings
from vgpuctl.vsphere.tls import Trust, context, format_thumbprint

Door = Callable[[], Impostor]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def impostor(by_day: Lab, authority: trustme.CA) -> Iterator[Impostor]:
    port = urlsplit(by_day.env["GOVC_URL"]).port
    door = Impostor(port or 0, authority.issue_cert("127.0.0.1"))
    yield door
    door.close()


def thumbprint(certificate: trustme.LeafCert, algorithm: str = "sha256") -> str:
    der = ssl.PEM_cert_to_DER_cert(certificate.cert_chain_pems[0].bytes().decode())
    return hashlib.new(algorithm, der).hexdigest()


def session(lab: Lab, door: Impostor, trust: Trust) -> Session:
    user, password = lab.env["GOVC_USERNAME"], lab.env["GOVC_PASSWORD"]
    return Session(VcenterSettings(host="127.0.0.1", port=door.port, user=user, password=password, trust=trust))


@pytest.mark.parametrize("algorithm", ["sha256", "sha1"])
def test_the_pinned_one_is_let_in_though_no_ca_knows_it(algorithm: str, by_day: Lab, impostor: Impostor) -> None:
    pinned = session(by_day, impostor, Trust(pin=thumbprint(impostor.certificate, algorithm))).open()
    assert pinned.content.about.name
    pinned.close()


def test_a_certificate_that_changes_between_two_connections_is_refused_before_anything_is_sent(
    by_day: Lab, impostor: Impostor, authority: trustme.CA, tmp_path: Path
) -> None:
    """Even one that a trusted CA signed: the pin says which, not whose."""
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    pin = thumbprint(impostor.certificate)
    pinned = session(by_day, impostor, Trust(pin=pin, ca_file=str(ca_file))).open()
    assert by_day.env["GOVC_PASSWORD"].encode() in impostor.heard
    impostor.show(authority.issue_cert("127.0.0.1"))
    impostor.hang_up()
    impostor.heard = b""
    _fails_until_refused(pinned)
    with pytest.raises(UnreachableError) as told:
        pinned.open()
    impostor.close()
    assert impostor.heard == b""
    assert f"pinned  {format_thumbprint(pin)}" in told.value.message
    assert f"shown   {format_thumbprint(thumbprint(impostor.certificate))}" in told.value.message


def _fails_until_refused(pinned: Session) -> None:
    """The first call may find the old connection cut; the next one opens another."""
    for _ in range(2):
        try:
            pinned.content.rootFolder.name  # noqa: B018
        except UnreachableError:
            return
        except (OSError, HTTPException):
            continue
    raise AssertionError("nothing was refused")


def test_without_a_pin_it_is_the_ca_that_counts(
    by_day: Lab, impostor: Impostor, authority: trustme.CA, tmp_path: Path
) -> None:
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    session(by_day, impostor, Trust(ca_file=str(ca_file))).open().close()
    impostor.heard = b""
    with pytest.raises(UnreachableError, match="not trusted") as told:
        session(by_day, impostor, Trust()).open()
    assert impostor.heard == b""
    assert format_thumbprint(thumbprint(impostor.certificate)) in str(told.value.hint)
    session(by_day, impostor, Trust(verify=False)).open().close()


def test_there_is_no_way_round_the_pin() -> None:
    """Streams of asyncio know nothing of our sockets."""
    with pytest.raises(NotImplementedError):
        context(Trust(pin="ab" * 32), "vc:443").wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO())

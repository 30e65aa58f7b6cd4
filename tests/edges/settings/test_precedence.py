"""Flag, our variable, another tool's variables as a whole, the settings file; and nothing is mixed across vCenters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.said import CANARY, config, govc, secret, vcenter
from vgpuctl.model.errors import UsageError

OURS = {"VGPUCTL_VCENTER": "two.example.com", "VGPUCTL_VCENTER_USER": "bob", "VGPUCTL_PASSWORD": "of-bob"}
TERRAFORM = {"VSPHERE_SERVER": "three.example.com", "VSPHERE_USER": "carol", "VSPHERE_PASSWORD": "of-carol"}
ANSIBLE = {"VMWARE_HOST": "four.example.com", "VMWARE_USER": "dave", "VMWARE_PASSWORD": "of-dave"}
FILE = "vcenter: five.example.com\nvcenter-user: erin\npassword-file: of-erin\n"


def login(home: Path, env: dict[str, str], **flags: object) -> tuple[str, str, str]:
    found = vcenter(home, env=env, **flags)
    return found.host, found.user, found.password


def test_the_first_place_that_names_a_vcenter_decides_as_whom(tmp_path: Path) -> None:
    """All places say something else; one after the other falls silent."""
    secret(config(tmp_path, FILE).parent / "of-erin", "of-erin")
    flags = {"vcenter": "zero.example.com", "vcenter_user": "zoe", "password_file": secret(tmp_path / "z", "of-zoe")}
    assert login(tmp_path, OURS | govc(), **flags) == ("zero.example.com", "zoe", "of-zoe")
    assert login(tmp_path, OURS | govc()) == ("two.example.com", "bob", "of-bob")
    assert login(tmp_path, govc()) == ("one.example.com", "alice", CANARY)
    assert login(tmp_path, TERRAFORM) == ("three.example.com", "carol", "of-carol")
    assert login(tmp_path, ANSIBLE) == ("four.example.com", "dave", "of-dave")
    assert login(tmp_path, {}) == ("five.example.com", "erin", "of-erin")


def test_a_password_is_never_sent_to_another_vcenter_than_the_one_it_stands_beside(tmp_path: Path) -> None:
    """Not even where the user has the same name at both."""
    env = govc(user="zoe") | OURS | {"VGPUCTL_VCENTER_USER": "zoe"}
    with pytest.raises(UsageError, match=r"No password is given for zoe at vCenter zero.example.com") as told:
        login(tmp_path, env, vcenter="zero.example.com", vcenter_user="zoe")
    assert "Not used, because it belongs to another vCenter or user: VGPUCTL_PASSWORD, GOVC_PASSWORD." in str(
        told.value.hint
    )


def test_a_password_is_never_used_for_another_user(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No password is given for zoe at vCenter one"):
        login(tmp_path, govc(), vcenter_user="zoe")
    with pytest.raises(UsageError, match="No password is given for zoe at vCenter one"):
        login(tmp_path, {"GOVC_URL": f"alice:{CANARY}@one.example.com", "GOVC_USERNAME": "zoe"})


def test_a_login_that_names_no_vcenter_is_for_the_one_that_is_named(tmp_path: Path) -> None:
    hostless = {name: value for name, value in TERRAFORM.items() if name != "VSPHERE_SERVER"}
    assert login(tmp_path, hostless, vcenter="zero.example.com") == ("zero.example.com", "carol", "of-carol")
    with pytest.raises(UsageError, match="No user"):
        login(tmp_path, {"GOVC_URL": "one.example.com"} | hostless)  # of two families only one is heard


def test_naming_a_vcenter_chooses_the_login_that_stands_beside_it(tmp_path: Path) -> None:
    every = govc() | TERRAFORM | ANSIBLE
    for host, user in [("one.example.com", "alice"), ("THREE.example.com:443", "carol"), ("four.example.com", "dave")]:
        assert login(tmp_path, every, vcenter=host)[1] == user


def test_families_that_name_different_vcenters_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"GOVC_URL names one.*VSPHERE_SERVER names three") as told:
        login(tmp_path, govc() | TERRAFORM)
    assert "--vcenter" in str(told.value.hint)
    same = TERRAFORM | {"VSPHERE_SERVER": "https://one.example.com/sdk"}
    assert login(tmp_path, govc() | same)[1] == "alice"


def test_trust_belongs_to_the_vcenter_too(tmp_path: Path) -> None:
    """`insecure` for a lab must not follow to the production server."""
    env = govc() | {"GOVC_INSECURE": "1"} | {"VGPUCTL_VCENTER_USER": "bob", "VGPUCTL_PASSWORD": "of-bob"}
    assert not vcenter(tmp_path, env=env).trust.verify
    assert vcenter(tmp_path, env=env, vcenter="zero.example.com").trust.verify


@pytest.mark.parametrize("said", ["1", "true", "TRUE"])
def test_insecure_is_said_by_name(said: str, tmp_path: Path) -> None:
    assert vcenter(tmp_path, env=govc()).trust.verify
    assert not vcenter(tmp_path, env=govc() | {"GOVC_INSECURE": said}).trust.verify
    assert vcenter(tmp_path, env=govc() | {"GOVC_INSECURE": said, "VGPUCTL_INSECURE": "no"}).trust.verify
    assert not vcenter(tmp_path, env=ANSIBLE | {"VMWARE_VALIDATE_CERTS": "no"}).trust.verify
    assert vcenter(tmp_path, env=ANSIBLE | {"VMWARE_VALIDATE_CERTS": "yes", "VMWARE_PORT": "8443"}).port == 8443
    with pytest.raises(UsageError, match="GOVC_INSECURE must be true or false"):
        vcenter(tmp_path, env=govc() | {"GOVC_INSECURE": "perhaps"})


PIN = "ab" * 32
COLONS = ":".join(["AB"] * 32)
NO_ADDRESSES = ["http://vc", "https://", f"https://a:{CANARY}/x@vc", "vc:port", "https://[vc", f"a:{CANARY}?@vc", "a b"]
PASSWORDS = ("VGPUCTL_PASSWORD", "GOVC_PASSWORD", "VSPHERE_PASSWORD", "VMWARE_PASSWORD", "--password-file", "--keyring")
USERS = ("--vcenter-user", "VGPUCTL_VCENTER_USER", "GOVC_USERNAME", "VSPHERE_USER", "VMWARE_USER")
VCENTERS = ("--vcenter", "VGPUCTL_VCENTER", "GOVC_URL", "VSPHERE_SERVER", "VMWARE_HOST", "config.yaml")


@pytest.mark.parametrize(
    "said", [PIN, PIN.upper(), ":".join(["AB"] * 32), f"sha256 Fingerprint={':'.join(['AB'] * 32)}"]
)
def test_a_pin_is_taken_as_people_paste_it_and_insecure_does_not_undo_it(said: str, tmp_path: Path) -> None:
    found = vcenter(tmp_path, env=govc(), thumbprint=said, insecure=True)
    assert found.trust.pin == PIN
    assert not found.unverified


@pytest.mark.parametrize("said", ["", "ab", "g" * 64, "ab" * 64])
def test_what_is_no_thumbprint_pins_nothing_and_is_told(said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--thumbprint is not a thumbprint"):
        vcenter(tmp_path, env=govc(), thumbprint=said)


def test_govcs_known_hosts_pin(tmp_path: Path) -> None:
    """The last line of a host counts; a host that is not there is left to the CAs."""
    known = tmp_path / "known"
    known.write_text(f"two.example.com:443 {'cd' * 20}\none.example.com:443 {'cd' * 20}\none.example.com:443 {PIN}\n")
    env = govc() | {"GOVC_TLS_KNOWN_HOSTS": str(known)}
    assert vcenter(tmp_path, env=env).trust.pin == PIN
    assert vcenter(tmp_path, env=env | {"GOVC_URL": "one.example.com:8443"}).trust.pin is None
    assert vcenter(tmp_path, env=env | {"GOVC_TLS_KNOWN_HOSTS": str(tmp_path / "none")}).trust.pin is None


@pytest.mark.parametrize(
    ("said", "server", "path"),
    [
        ("vc", "vc:443", "/sdk"),
        ("vc:8443", "vc:8443", "/sdk"),
        ("https://vc/", "vc:443", "/sdk"),
        ("https://vc/other/sdk", "vc:443", "/other/sdk"),
        ("https://[::1]:8989/sdk", "[::1]:8989", "/sdk"),
        ("ali%40vsphere.local:p%2Fw@vc", "vc:443", "/sdk"),
    ],
)
def test_an_address_as_people_write_it(said: str, server: str, path: str, tmp_path: Path) -> None:
    env = govc() if "@" not in said else {}
    found = vcenter(tmp_path, env=env | {"GOVC_URL": said})
    assert (found.server, found.path) == (server, path)
    if "@" in said:
        assert (found.user, found.password) == ("ali@vsphere.local", "p/w")


@pytest.mark.parametrize("said", NO_ADDRESSES)
def test_what_is_no_address_is_refused_and_not_repeated(said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="GOVC_URL is not the address") as told:
        vcenter(tmp_path, env=govc() | {"GOVC_URL": said})
    assert CANARY not in f"{told.value}{told.value.hint}"


def test_what_is_missing_names_every_way_to_give_it(tmp_path: Path) -> None:
    for env, ways in (({}, VCENTERS), ({"GOVC_URL": "vc"}, USERS), ({"GOVC_URL": "a@vc"}, PASSWORDS)):
        with pytest.raises(UsageError) as told:
            vcenter(tmp_path, env=env)
        assert not [way for way in ways if way not in str(told.value.hint)]

"""A password comes from the environment, a file that is ours alone, or the keyring; nothing prints it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail

from tests.support.said import CANARY, config, govc, secret, vcenter
from vgpuctl.model.errors import UsageError
from vgpuctl.settings.passwords import from_file, open_to_others

US, ROOT, THEM = 1000, 0, 2000
REGULAR = 0o100000


@pytest.mark.parametrize(
    ("owner", "mode", "wrong"),
    [
        (US, 0o600, None),
        (US, 0o400, None),
        (US, 0o640, "mode is 0640"),
        (US, 0o604, "mode is 0604"),
        (US, 0o644, "mode is 0644"),
        (THEM, 0o600, "belongs to another user"),
        (ROOT, 0o400, None),
        # What kubelet makes of a Secret with an fsGroup.
        (ROOT, 0o440, None),
        (ROOT, 0o640, None),
        (ROOT, 0o444, "mode is 0444"),
        (ROOT, 0o644, "mode is 0644"),
        (ROOT, 0o660, "mode is 0660"),
    ],
)
def test_who_may_read_a_password_file(owner: int, mode: int, wrong: str | None) -> None:
    file = SimpleNamespace(st_uid=owner, st_mode=REGULAR | mode)
    found = open_to_others(file, US)  # type: ignore[arg-type]
    assert found is None if wrong is None else wrong in str(found)


def test_one_newline_at_the_end_is_not_the_passwords(tmp_path: Path) -> None:
    for text in (CANARY, f"{CANARY}\n", f"{CANARY}\r\n"):
        assert from_file(secret(tmp_path / "pw", text)) == CANARY
    assert from_file(secret(tmp_path / "pw", f" {CANARY} \n")) == f" {CANARY} "


def test_a_mounted_secret_is_a_link_and_its_target_counts(tmp_path: Path) -> None:
    target = secret(tmp_path / "target", mode=0o400)
    (tmp_path / "pw").symlink_to(target)
    assert from_file(tmp_path / "pw") == CANARY
    target.chmod(0o444)
    with pytest.raises(UsageError, match="mode is 0444"):
        from_file(tmp_path / "pw")


@pytest.mark.parametrize("text", ["", "\n", f"one\n{CANARY}\n", f"{CANARY * 1000}"])
def test_a_file_that_holds_no_single_password_is_refused_unseen(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as told:
        from_file(secret(tmp_path / "pw", text))
    assert CANARY not in str(told.value)


def test_a_pipe_a_folder_bytes_and_nothing_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "bytes").chmod(0o600)
    for name in ("pipe", ".", "bytes", "none"):
        with pytest.raises(UsageError, match="The password file"):
            from_file(tmp_path / name)


class Remembering(KeyringBackend):
    """A keyring in memory, behind the library's own door."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # keyring leaves it without types
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def ring() -> Iterator[Remembering]:
    before, backend = keyring.get_keyring(), Remembering()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def test_the_keyring_is_asked_for_this_user_at_this_vcenter(ring: Remembering, tmp_path: Path) -> None:
    keyring.set_password("vgpuctl:one.example.com", "alice", CANARY)
    assert vcenter(tmp_path, vcenter="alice@one.example.com", keyring=True).password == CANARY
    for other in ("alice@two.example.com", "alice@one.example.com:8443", "bob@one.example.com"):
        with pytest.raises(UsageError, match="no password for") as told:
            vcenter(tmp_path, vcenter=other, keyring=True)
        assert str(told.value.hint).startswith("Store it with: keyring set vgpuctl:")


def test_the_keyring_is_asked_only_by_name(ring: Remembering, tmp_path: Path) -> None:
    keyring.set_password("vgpuctl:one.example.com", "alice", CANARY)
    with pytest.raises(UsageError, match="No password"):
        vcenter(tmp_path, vcenter="alice@one.example.com")
    config(tmp_path, "vcenter: alice@one.example.com\nkeyring: true\n")
    assert vcenter(tmp_path).password == CANARY


def test_a_machine_without_a_keyring_is_told_so(ring: Remembering, tmp_path: Path) -> None:
    keyring.set_keyring(fail.Keyring())
    with pytest.raises(UsageError, match="The keyring cannot be used: NoKeyringError"):
        vcenter(tmp_path, vcenter="alice@one.example.com", keyring=True)


def test_without_its_library_the_keyring_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "keyring", None)
    with pytest.raises(UsageError, match="not installed") as told:
        vcenter(tmp_path, vcenter="alice@one.example.com", keyring=True)
    assert "vgpuctl[keyring]" in str(told.value.hint)


def test_no_print_of_settings_holds_the_password(tmp_path: Path) -> None:
    for url in ("one.example.com", f"alice:{CANARY}@one.example.com"):
        found = vcenter(tmp_path, env=govc(url))
        assert found.password == CANARY
        assert CANARY not in f"{found!r} {found}"


def test_what_may_change_while_we_run_can_be_read_again(ring: Remembering, tmp_path: Path) -> None:
    """A Secret that is mounted as a file is rotated there; an environment stays as it is."""
    file = secret(tmp_path / "pw", "old\n")
    found = vcenter(tmp_path, vcenter="alice@one.example.com", password_file=file)
    secret(file, f"{CANARY}\n")
    assert (found.password, found.reread and found.reread()) == ("old", CANARY)
    keyring.set_password("vgpuctl:one.example.com", "alice", "old")
    found = vcenter(tmp_path, vcenter="alice@one.example.com", keyring=True)
    keyring.set_password("vgpuctl:one.example.com", "alice", CANARY)
    assert (found.password, found.reread and found.reread()) == ("old", CANARY)
    assert vcenter(tmp_path, env=govc()).reread is None

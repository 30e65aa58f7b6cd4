"""A laboratory's folder is its owner's alone: no other user reads its secrets or exchanges its files."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vgpuctl.cli.app import app
from vgpuctl.cli.lazy import build_command
from vgpuctl.sim import folder as folders
from vgpuctl.sim import lifecycle
from vgpuctl.sim.errors import SimError
from vgpuctl.sim.files import Access, write_all, write_pid
from vgpuctl.sim.folder import create_folder, owned_folder
from vgpuctl.sim.inventory import default_inventory
from vgpuctl.sim.logins import Logins

ACCESS = Access(
    vcenter_port=1,
    kubernetes_port=2,
    control_port=3,
    logins=Logins(user="me", password="secret", reader="reader", readers_password="secret", token="secret"),
    control_token="secret",
    ca_pem=b"a certificate",
)
SECRET = {"env", "kubeconfig", "control.json"}
OPEN = {"ca.pem", "config.yaml", "profiles.yaml", "pid"}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def as_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user would find what this one made."""
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    monkeypatch.setattr(folders, "ROOT", me + 2)


def write(folder: Path) -> None:
    write_all(folder, default_inventory(1, 1), ACCESS)
    write_pid(folder)


@pytest.mark.usefixtures("umask")
def test_whatever_the_umask_folder_and_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = create_folder(tmp_path / "deep" / "lab")
    write(folder)
    assert {mode(each) for each in (folder, folder.parent, folder / "schedules")} == {0o700}
    assert {name: mode(folder / name) for name in SECRET} == dict.fromkeys(SECRET, 0o600)
    assert {name: mode(folder / name) for name in OPEN} == dict.fromkeys(OPEN, 0o644)


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir(mode=0o750)
    assert mode(create_folder(tmp_path / "lab")) == 0o750


@pytest.mark.parametrize("wrong", [0o770, 0o702, 0o777, 0o1777], ids=oct)
def test_a_folder_that_others_may_write_into_is_refused(wrong: int, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab").chmod(wrong)
    with pytest.raises(SimError, match=f"its mode is {wrong:04o}") as caught:
        create_folder(tmp_path / "lab")
    assert ("--dir" if wrong == 0o1777 else "chmod go-w") in str(caught.value.hint)


def test_a_folder_in_one_that_everybody_may_change_needs_the_sticky_bit(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(SimError, match="Any user can replace"):
        create_folder(shared / "deep" / "lab")
    assert not list(shared.iterdir())
    shared.chmod(0o1777)
    assert create_folder(shared / "deep" / "lab").is_dir()


@pytest.mark.usefixtures("as_another_user")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SimError, match="belongs to another user"):
        create_folder(tmp_path)


def test_a_link_of_ours_is_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").symlink_to("there")
    (tmp_path / "there" / "up").symlink_to("../there")
    assert owned_folder(tmp_path / "here" / "up" / "lab") == tmp_path / "there" / "lab"


def test_a_link_of_another_user_is_refused(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "here").symlink_to(tmp_path / "there")
    request.getfixturevalue("as_another_user")
    with pytest.raises(SimError, match="here is a link that another user made"):
        create_folder(tmp_path / "here" / "lab")
    assert not (tmp_path / "there").exists()


def test_links_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(SimError, match="too many links"):
        owned_folder(tmp_path / "a")


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lab").touch()
    with pytest.raises(SimError, match="is not a folder"):
        create_folder(tmp_path / "lab")
    with pytest.raises(SimError, match="cannot be used: Not a directory"):
        create_folder(tmp_path / "lab" / "below")


def test_a_file_of_the_laboratory_replaces_a_link_and_leaves_what_it_led_to(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = create_folder(tmp_path / "lab")
    for name in SECRET | OPEN:
        (folder / name).symlink_to(victim)
        (folder / f"{name}.new").symlink_to(victim)
    write(folder)
    assert victim.read_text() == "precious"
    assert not any((folder / name).is_symlink() for name in SECRET | OPEN)


def test_a_link_in_the_place_of_the_timetables_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "my-schedules"
    own.mkdir()
    folder = create_folder(tmp_path / "lab")
    (folder / "schedules").symlink_to(own)
    with pytest.raises(SimError, match="schedules is a link"):
        write(folder)
    assert not list(own.iterdir())


def test_the_log_replaces_a_link_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim, folder = tmp_path / "victim", create_folder(tmp_path / "lab")
    victim.write_text("precious")
    (folder / "log").symlink_to(victim)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SimError, match="did not start"):
        lifecycle.start_detached(folder, [])
    assert victim.read_text() == "precious"
    assert mode(folder / "log") == 0o600


COMMANDS = ("up", "down", "env", "calls", "fault list", "set clock", "set durations", "set person cordon x", "set vm x")


@pytest.mark.parametrize("words", COMMANDS)
def test_no_command_uses_a_folder_that_others_may_write_into(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "env").write_text("echo 'other people wrote this'")
    tmp_path.chmod(0o777)
    with pytest.raises(SystemExit) as ended:
        build_command(app)(["sim", *words.split(), "--dir", str(tmp_path)])
    printed = capsys.readouterr()
    assert ended.value.code == 1
    assert "Other users may write into the folder" in printed.err
    assert "Hint: chmod go-w" in printed.err
    assert printed.out == ""

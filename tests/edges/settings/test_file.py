"""The settings file: strict, relative to itself, without a secret in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.said import CANARY, config, govc, secret, vcenter
from vgpuctl.model.errors import UsageError
from vgpuctl.settings import Flags, existing_schedules, profiles_path, schedules_path, settings


def told(home: Path, text: str) -> str:
    config(home, text)
    with pytest.raises(UsageError) as error:
        vcenter(home, env=govc())
    assert CANARY not in f"{error.value}{error.value.hint}"
    return str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        f"password: {CANARY}\n",
        f"vcenter-password: {CANARY}\n",
        f"vcenter: alice:{CANARY}@one.example.com\n",
        f"vcenter: https://alice:{CANARY}@one.example.com/sdk\n",
        # What a parser would quote of the line where it stumbles.
        f'password: "{CANARY}\n',
        f"password: {CANARY}: {CANARY}\n",
        f"password: *{CANARY}\n",
        f"password: !{CANARY}\n",
        f"password: [{CANARY}\n",
    ],
)
def test_a_password_may_not_stand_in_it_and_is_not_repeated(text: str, tmp_path: Path) -> None:
    assert "config.yaml" in told(tmp_path, text)


def test_all_its_faults_are_told_at_once_with_the_nearest_name(tmp_path: Path) -> None:
    found = told(tmp_path, "vcentre: a\npasswordFile: b\ninsecure: perhaps\nthumbprint: 12\nlease-seconds: soon\n")
    for line in (
        "line 2: vcentre: is not a known key; did you mean vcenter?",
        "line 3: passwordFile: is not a known key; did you mean password-file?",
        "line 4: insecure: must be true or false",
        "line 5: thumbprint: must be a string; put it in quotes",
        "line 6: lease-seconds: must be a number of seconds",
    ):
        assert line in found


def test_its_paths_are_meant_from_its_own_folder(tmp_path: Path) -> None:
    folder = config(tmp_path, "").parent
    secret(folder / "pw")
    text = (
        "vcenter: alice@vc\npassword-file: pw\nprofiles: p.yaml\nschedules: ~/s\nkubeconfig: k1:/k2\nca-file: ca.pem\n"
    )
    config(tmp_path, text + "context: night\nnamespace: gpu\nlease-seconds: 30\nconnect-seconds: 2.5\n")
    env = {"HOME": str(tmp_path)}
    found = settings(Flags(), env)
    assert found.vcenter.password == CANARY
    assert found.vcenter.trust.ca_file == str(folder / "ca.pem")
    assert found.kubernetes.kubeconfig == f"{folder / 'k1'}:/k2"
    assert (found.kubernetes.context, found.kubernetes.namespace) == ("night", "gpu")
    assert (found.lease_s, found.connect_s) == (30.0, 2.5)
    assert profiles_path(Flags(), env) == folder / "p.yaml"
    assert schedules_path(Flags(), env) == Path.home() / "s"
    assert profiles_path(Flags(), env | {"VGPUCTL_PROFILES": "mine"}) == Path("mine")


@pytest.mark.parametrize("said", ["60.5", "3600"])
def test_a_lease_that_would_hold_up_others_for_more_than_a_minute_is_refused(said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="VGPUCTL_LEASE_SECONDS must be at most 60 seconds"):
        vcenter(tmp_path, env=govc() | {"VGPUCTL_LEASE_SECONDS": said})
    config(tmp_path, f"lease-seconds: {said}\n")
    with pytest.raises(UsageError, match=r"lease-seconds in .*config\.yaml must be at most 60 seconds"):
        vcenter(tmp_path, env=govc())


def test_how_long_a_switch_may_be_blind_is_half_an_hour_unless_said_otherwise(tmp_path: Path) -> None:
    env = govc() | {"HOME": str(tmp_path)}
    assert settings(Flags(), env).blind_s == 1800
    assert settings(Flags(), env | {"VGPUCTL_BLIND_SECONDS": "90"}).blind_s == 90


def test_a_folder_of_timetables_that_is_named_must_be_there(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    with pytest.raises(UsageError, match="The folder of timetables, nowhere, does not exist") as told:
        existing_schedules(Flags(), env | {"VGPUCTL_SCHEDULES": "nowhere"})
    assert told.value.hint == "It is set by VGPUCTL_SCHEDULES."
    assert existing_schedules(Flags(schedules=tmp_path), env) == tmp_path


def test_which_file_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by flag, by variable, or the user's own; one in the working folder is not looked at."""
    config(tmp_path, "vcenter: own\n")
    secret(tmp_path / "named.yaml", "version: 1\nvcenter: named\n")
    secret(tmp_path / "vgpuctl.yaml", "version: 1\nvcenter: working\n")
    monkeypatch.chdir(tmp_path)
    login = {"VGPUCTL_VCENTER_USER": "alice", "VGPUCTL_PASSWORD": CANARY}
    assert vcenter(tmp_path, env=login).host == "own"
    assert vcenter(tmp_path, env=login | {"VGPUCTL_CONFIG": "named.yaml"}).host == "named"
    assert vcenter(tmp_path, env=login | {"VGPUCTL_CONFIG": "none"}, config=Path("named.yaml")).host == "named"
    with pytest.raises(UsageError, match="There is no settings file none"):
        vcenter(tmp_path, env=login | {"VGPUCTL_CONFIG": "none"})
    xdg = config(tmp_path / "xdg", "vcenter: xdg\n").parents[1]
    assert vcenter(tmp_path, env=login | {"XDG_CONFIG_HOME": str(xdg)}).host == "xdg"


def test_paths_in_a_mounted_file_do_not_lead_into_the_folder_that_kubelet_replaces(tmp_path: Path) -> None:
    (tmp_path / "..2026_11").mkdir()
    (tmp_path / "..2026_11" / "config.yaml").write_text("version: 1\nprofiles: profiles.yaml\n")
    (tmp_path / "..data").symlink_to("..2026_11")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    assert profiles_path(Flags(config=tmp_path / "config.yaml"), {}) == tmp_path / "profiles.yaml"

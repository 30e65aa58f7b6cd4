"""When the daemon counts as alive, and as ready."""

from __future__ import annotations

from dataclasses import dataclass, field

from vgpuctl.daemon.serving.health import Pulse, Readiness


@dataclass
class Around:
    """Servers and leadership as a test says."""

    silent: dict[str, str] = field(default_factory=dict)
    leads: bool = False
    stands_by: bool = False

    def silent_streams(self) -> dict[str, str]:
        return self.silent

    def leading(self) -> bool:
        return self.leads

    def standing_by(self) -> bool:
        return self.stands_by


def readiness(around: Around) -> Readiness:
    found = Readiness()
    found.connect(around, around)
    return found


def test_it_is_alive_until_three_minutes_have_passed_without_a_round() -> None:
    now_s = [0.0]
    pulse = Pulse(lambda: now_s[0])
    pulse.beat()
    now_s[0] = 179.0
    assert pulse.alive() == {"alive": True, "lastRoundSeconds": 179}
    now_s[0] = 180.0
    assert pulse.alive() == {"alive": False, "lastRoundSeconds": 180}
    pulse.beat()
    assert pulse.alive()["alive"]


def test_while_it_waits_for_its_first_login_it_is_alive_however_long_that_takes() -> None:
    """kubelet would start it again, and its pace after refused logins would be lost."""
    pulse = Pulse(lambda: 10_000.0)
    assert pulse.alive() == {"alive": True, "lastRoundSeconds": None}


def test_before_the_first_picture_it_is_not_ready() -> None:
    assert Readiness().ready() == {
        "ready": False,
        "role": None,
        "missing": ["the first picture of vCenter and Kubernetes"],
    }


def test_it_is_ready_when_both_servers_are_heard_and_it_leads_or_stands_by() -> None:
    assert readiness(Around(leads=True)).ready() == {"ready": True, "role": "leading", "missing": []}
    assert readiness(Around(stands_by=True)).ready() == {"ready": True, "role": "standing by", "missing": []}


def test_it_says_all_that_is_missing_and_no_reason_that_could_name_a_server() -> None:
    around = Around(silent={"vCenter": "vcenter.example.com refuses the connection"})
    assert readiness(around).ready() == {
        "ready": False,
        "role": None,
        "missing": ["vCenter is not heard", "the daemon neither leads nor stands by"],
    }

"""One login serves all threads; a server that is no vCenter, or none at all, is told at once."""

from __future__ import annotations

import json
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.lab import Lab
from vgpuctl.model.errors import PassingError, UnreachableError, UsageError
from vgpuctl.vsphere.session import LOGOUT_WITHIN_S, LoginRefusedError, Session, VcenterSettings
from vgpuctl.vsphere.tls import Trust

THREADS = 8
WITHIN_S = 20


def session(lab: Lab, url: str, path: str = "/sdk", **more: Any) -> Session:
    trust = Trust(ca_file=lab.env["GOVC_TLS_CA_CERTS"])
    given = {"user": lab.env["GOVC_USERNAME"], "password": lab.env["GOVC_PASSWORD"], "trust": trust, **more}
    return Session(VcenterSettings(host="127.0.0.1", port=urlsplit(url).port or 443, path=path, **given))


def logins(lab: Lab) -> tuple[int, int]:
    """How often somebody logged in, and out, since this was last asked."""
    calls = lab.calls().get("vcenter", {})
    return calls.get("Login", 0), calls.get("Logout", 0)


def test_one_login_serves_all_threads(by_day: Lab) -> None:
    one = session(by_day, by_day.env["GOVC_URL"]).open()
    by_day.calls()
    with ThreadPoolExecutor(THREADS) as pool:
        names = list(pool.map(lambda _: one.content.rootFolder.name, range(THREADS * 5)))
    one.close()
    assert len(set(names)) == 1
    calls = by_day.calls()["vcenter"]
    assert "Login" not in calls
    assert calls["Logout"] == 1


def test_another_server_is_no_vcenter(by_day: Lab) -> None:
    """It gets no password: the versions are asked for first."""
    kubernetes = json.loads(Path(by_day.env["KUBECONFIG"]).read_text())["clusters"][0]["cluster"]["server"]
    with pytest.raises(UnreachableError, match="answers, but not as a vCenter does"):
        session(by_day, kubernetes).open()
    with pytest.raises(UnreachableError, match="answers, but not as a vCenter does"):
        session(by_day, by_day.env["GOVC_URL"], "/elsewhere").open()


def test_a_server_that_hangs_up_may_answer_later(by_day: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    with pytest.raises(PassingError, match="does not answer"):
        session(by_day, f"https://127.0.0.1:{port}").open()


# One login at a time


def test_a_session_that_lasts_is_not_opened_twice(by_day: Lab) -> None:
    one = session(by_day, by_day.env["GOVC_URL"]).open()
    content = one.content
    by_day.calls()
    assert one.open().content is content
    assert logins(by_day) == (0, 0)
    one.close()
    assert logins(by_day) == (0, 1)


def test_one_that_vcenter_has_forgotten_is_opened_anew(by_day: Lab) -> None:
    one = session(by_day, by_day.env["GOVC_URL"]).open()
    one.content.sessionManager.Logout()
    by_day.calls()
    assert one.open().content.rootFolder.name
    one.close()
    assert logins(by_day) == (1, 1)


def test_once_closed_it_is_not_opened_again(by_day: Lab) -> None:
    """A stream that logs in at that moment would leave a session behind."""
    one = session(by_day, by_day.env["GOVC_URL"]).open()
    one.close()
    by_day.calls()
    with pytest.raises(UnreachableError, match="is closed"):
        one.open()
    assert logins(by_day) == (0, 0)


def test_a_login_that_is_under_way_when_it_is_closed_is_logged_out(by_day: Lab) -> None:
    one, going_on, go_on = session(by_day, by_day.env["GOVC_URL"]), Event(), Event()

    def slowly() -> float:
        going_on.set()
        assert go_on.wait(WITHIN_S)
        return 0.0

    one._throttle.wait_s = slowly  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        opening = pool.submit(one.open)
        assert going_on.wait(WITHIN_S)
        closing = pool.submit(one.close)
        go_on.set()
        opening.result()
        closing.result()
    assert logins(by_day) == (1, 1)


def test_a_logout_that_hangs_holds_up_no_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vgpuctl.vsphere.session.LOGOUT_WITHIN_S", 0.05)
    over, begun = Event(), Event()

    def logout() -> None:
        begun.set()
        over.wait(WITHIN_S)

    one = Session(VcenterSettings(host="vc", user="u", password="p"))
    one.content = SimpleNamespace(sessionManager=SimpleNamespace(Logout=logout))
    one._logged_in = True
    began_s = time.monotonic()
    one.close()
    assert time.monotonic() - began_s < WITHIN_S / 2
    assert begun.is_set()
    over.set()


def test_two_seconds_are_what_a_logout_gets() -> None:
    assert LOGOUT_WITHIN_S == 2.0


# Refusals


def test_a_fifth_refusal_is_not_risked(by_day: Lab) -> None:
    """vCenter locks an account after five."""
    one = session(by_day, by_day.env["GOVC_URL"], password="wrong", login_origin="It comes from X.")
    told = []
    for _ in range(6):
        with pytest.raises(LoginRefusedError) as refused:
            one.open()
        told.append(refused.value)
    assert logins(by_day) == (4, 0)
    assert [bool(each.after_s) for each in told] == [False] * 3 + [True] * 3
    assert 299 < told[3].after_s <= 300
    assert re.search(r"does not accept .*; next try at \d\d:\d\d, because five refusals lock", told[4].message)
    assert {(each.hint, each.passing, each.exit_code) for each in told} == {("It comes from X.", False, 5)}


def test_each_try_reads_the_password_where_it_stands(by_day: Lab) -> None:
    """A Secret that was rotated heals."""
    right, read = by_day.env["GOVC_PASSWORD"], []

    def reread() -> str:
        read.append("again")
        return right

    one = session(by_day, by_day.env["GOVC_URL"], password="old", reread=reread)
    with pytest.raises(LoginRefusedError):
        one.open()
    assert read == []
    one.open().close()
    assert read == ["again"]


def test_a_password_that_cannot_be_read_now_is_no_refusal(by_day: Lab) -> None:
    def reread() -> str:
        raise UsageError("The password file x cannot be read: No such file or directory.")

    one = session(by_day, by_day.env["GOVC_URL"], password="old", reread=reread)
    with pytest.raises(LoginRefusedError):
        one.open()
    by_day.calls()
    for _ in range(5):
        with pytest.raises(UsageError, match="cannot be read"):
            one.open()
    assert logins(by_day) == (0, 0)

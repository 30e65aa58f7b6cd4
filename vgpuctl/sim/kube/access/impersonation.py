"""Acting as another user: kubectl's `--as` and `--as-group`. Here only the administrator may do so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from starlette.datastructures import Headers

from vgpuctl.sim.kube.access.attributes import Attributes
from vgpuctl.sim.kube.access.users import AUTHENTICATED, User, account_of, service_account
from vgpuctl.sim.kube.api import errors

_USER, _GROUP = "impersonate-user", "impersonate-group"


def impersonated(caller: User, headers: Headers, asked: Callable[[], Attributes]) -> User:
    """Return the user that the caller asks to be, or else the caller. `asked`: returns what the request asks for."""
    name, groups = headers.get(_USER, ""), tuple(headers.getlist(_GROUP))
    if not name and not groups:
        return caller
    if not name:
        raise errors.bad_request(f"requested {_go_text(groups)} without impersonating a user name")
    account = account_of(name)
    if not caller.may_do_all:
        # Measured: kube-apiserver 1.36 asks for the right to do this one thing as another user (KEP-5284).
        manner = "serviceaccount" if account else "user-info"
        wanted = asked()
        raise errors.not_allowed(caller.name, replace(wanted, verb=f"impersonate-on:{manner}:{wanted.verb}"))
    if account and not groups:
        return service_account(*account)
    return User(name, tuple(dict.fromkeys((*groups, AUTHENTICATED))))


def _go_text(groups: tuple[str, ...]) -> str:
    named = ", ".join(f'"{group}"' for group in groups)
    return f'&user.DefaultInfo{{Name:"", UID:"", Groups:[]string{{{named}}}, Extra:map[string][]string(nil)}}'

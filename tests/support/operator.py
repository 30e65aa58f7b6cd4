"""The commands of `vgpuctl rights vcenter`, carried out with pyVmomi as govc does."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from pyVmomi import vim

from tests.support.clients import vcenter_as
from tests.support.forked import Command, run
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate
from vgpuctl.vsphere.rights import Privilege

WITHIN_S = 40
ROLE = "vgpuctl-worker"
PLACES = {"--workers": "/dc/vm", "--hosts": "/dc/host/gpu", "--datastores": "/dc/datastore"}


@cache
def printed(*options: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands, each as its words."""
    words = ("rights", "vcenter", *(word for place in PLACES.items() for word in place), *options)
    code, out, err = run(Command(words=words, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}), WITHIN_S)
    assert (code, err) == (0, "")
    lines = out.replace("\\\n", "").splitlines()
    return tuple(tuple(shlex.split(line)) for line in lines if line and not line.startswith("#"))


def carry_out(content: Any, commands: tuple[tuple[str, ...], ...]) -> None:
    """Do in an administrator's session what govc would do."""
    manager = content.authorizationManager
    for command in commands:
        match command:
            case ("govc", "role.create", name, *privileges):
                manager.AddAuthorizationRole(name, privileges)
            case ("govc", "permissions.set", "-principal", user, "-role", role, path):
                number = role_named(content, role).roleId
                permission = vim.AuthorizationManager.Permission(
                    principal=user, group=False, roleId=number, propagate=True
                )
                manager.SetEntityPermissions(entity_at(content, path), [permission])
            case _:
                raise AssertionError(f"no such command: {command}")


class Operator:
    """vgpuctl's own user at an estate's vCenter, with the role that the printed commands make."""

    def __init__(self, estate: Estate, *options: str) -> None:
        self._estate = estate
        self._commands = printed("--user", estate.logins.operator, *options)
        self._do(lambda content: carry_out(content, self._commands))

    def environment(self) -> dict[str, str]:
        """Return the estate's environment with this user in vCenter."""
        return {**self._estate.environment(), **self.login(), "NO_COLOR": "1"}

    def login(self) -> dict[str, str]:
        """Return the variables by which a command logs in as this user."""
        logins = self._estate.logins
        return {"GOVC_USERNAME": logins.operator, "GOVC_PASSWORD": logins.operators_password}

    @contextmanager
    def without(self, privilege: Privilege) -> Iterator[None]:
        """Take a privilege away for a while: from the role, or with the whole permission on its place."""
        path = PLACES[f"--{privilege.place.name.lower()}"]
        reading = privilege.name.startswith("System.")
        self._do(lambda content: self._remove(content, path) if reading else self._narrow(content, privilege.name))
        yield
        if reading:
            again = tuple(each for each in self._commands if each[-1] == path)
            self._do(lambda content: carry_out(content, again))
        else:
            self._do(self._narrow)

    def _remove(self, content: Any, path: str) -> None:
        entity = entity_at(content, path)
        content.authorizationManager.RemoveEntityPermission(entity, self._estate.logins.operator, False)

    def _narrow(self, content: Any, lost: str = "") -> None:
        """Give the role what it was printed with, but for one privilege."""
        (privileges,) = [each[3:] for each in self._commands if each[:3] == ("govc", "role.create", ROLE)]
        assert not lost or lost in privileges, f"the role has no {lost}"
        kept = [each for each in privileges if each != lost]
        content.authorizationManager.UpdateAuthorizationRole(role_named(content, ROLE).roleId, ROLE, kept)

    def _do(self, action: Callable[[Any], None]) -> None:
        """Act in an administrator's session."""

        def act(world: World) -> None:
            action(vcenter_as(world, world.logins.user, world.logins.password))

        self._estate.within(act)


def role_named(content: Any, name: str) -> Any:
    return next(role for role in content.authorizationManager.roleList if role.name == name)


def entity_at(content: Any, path: str) -> Any:
    found = content.searchIndex.FindByInventoryPath(path.strip("/"))
    assert found is not None, path
    return found

"""Roles and permissions as data, and what a user may do on an object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.physics.refusals import Refusal

#: vSphere: the numbers of the system roles; vcsim 0.56 has the same.
ADMIN, READ_ONLY, VIEW, ANONYMOUS, NO_ACCESS = -1, -2, -3, -4, -5
SYSTEM_ANONYMOUS, SYSTEM_VIEW, SYSTEM_READ = READING = ("System.Anonymous", "System.View", "System.Read")
Privileges = frozenset[str]
Parents = Callable[[Any], tuple[Any, ...]]
"""Returns the objects that an entity inherits permissions from."""


class Everything(frozenset[str]):
    """All privileges, also those that no simulated method asks for."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __contains__(self, _: object) -> bool:
        return True


EVERYTHING = Everything()
NOTHING: Privileges = frozenset()


@dataclass(frozen=True, slots=True)
class Role:
    """One role. `words`: the label and summary of a system role."""

    number: int
    name: str
    privileges: Privileges
    words: tuple[str, str] = ("", "")

    @property
    def is_system(self) -> bool:
        return self.number < 0


@dataclass(frozen=True, slots=True)
class Permission:
    """A role for one user on one object. `propagate`: on all objects below it, too."""

    entity: Any
    user: str
    role: int
    propagate: bool


_SYSTEM_ROLES = (
    Role(ADMIN, "Admin", EVERYTHING, ("Administrator", "Full access rights")),
    Role(READ_ONLY, "ReadOnly", frozenset(READING), ("Read-only", "See details of objects, but not make changes")),
    Role(VIEW, "View", frozenset((SYSTEM_ANONYMOUS, SYSTEM_VIEW)), ("View", "Visibility access (cannot be granted)")),
    Role(
        ANONYMOUS, "Anonymous", frozenset((SYSTEM_ANONYMOUS,)), ("Anonymous", "Not logged-in user (cannot be granted)")
    ),
    Role(NO_ACCESS, "NoAccess", NOTHING, ("No access", "Used for restricting granted access")),
)
_FIRST_NUMBER = 1000


class Permissions:
    """All roles and permissions of one vCenter."""

    def __init__(self, parents: Parents) -> None:
        self.roles = {role.number: role for role in _SYSTEM_ROLES}
        self._parents = parents
        self._by_entity: dict[str, dict[str, Permission]] = {}
        self._cached: dict[tuple[str, str], Privileges] = {}
        self._everywhere: dict[str, Privileges] = {}
        self._last_number = _FIRST_NUMBER

    def on(self, user: str, entity: Any) -> Privileges:
        """Return what the user may do on the object."""
        # Most users have one permission, on the root folder. Ten thousand VMs are read by them, each at every change.
        if user in self._everywhere:
            return self._everywhere[user]
        own = self._by_entity.get(entity._moId, {}).get(user)
        return self.roles[own.role].privileges if own else self._inherited(user, entity)

    def may_log_in(self, user: str) -> bool:
        return any(user in given for given in self._by_entity.values())

    def all(self) -> Iterator[Permission]:
        for given in self._by_entity.values():
            yield from given.values()

    def at(self, entity: Any) -> list[Permission]:
        """Return the permissions that were set on this very object."""
        return list(self._by_entity.get(entity._moId, {}).values())

    def above(self, entity: Any) -> Iterator[Permission]:
        """Yield the permissions that the object inherits."""
        for parent in self._parents(entity):
            yield from (each for each in self.at(parent) if each.propagate)
            yield from self.above(parent)

    def set(self, permission: Permission) -> None:
        """Set a permission. It replaces the one that the user has on this object."""
        if permission.role not in self.roles:
            raise _not_found()
        if not _is_administrators(permission):
            self._check_another_administrator(permission.entity, permission.user)
        self._by_entity.setdefault(permission.entity._moId, {})[permission.user] = permission
        self._forget()

    def remove(self, entity: Any, user: str) -> None:
        if user not in self._by_entity.get(entity._moId, {}):
            raise _not_found()
        self._check_another_administrator(entity, user)
        del self._by_entity[entity._moId][user]
        self._forget()

    def add_role(self, name: str, privileges: Iterable[str]) -> int:
        self._check_name(name)
        self._last_number += 1
        self._put_role(self._last_number, name, privileges)
        return self._last_number

    def change_role(self, number: int, name: str, privileges: Iterable[str]) -> None:
        role = self._own_role(number)
        if name != role.name:
            self._check_name(name)
        self._put_role(number, name, privileges)

    def remove_role(self, number: int, *, fail_if_used: bool) -> None:
        self._own_role(number)
        used = [each for each in self.all() if each.role == number]
        if used and fail_if_used:
            raise Refusal("RemoveFailed", "The role is in use by one or more permissions.")
        for each in used:
            del self._by_entity[each.entity._moId][each.user]
        del self.roles[number]
        self._forget()

    def role(self, number: int) -> Role:
        if number not in self.roles:
            raise _not_found()
        return self.roles[number]

    def _forget(self) -> None:
        """Forget what was computed from the permissions, as they have changed."""
        self._cached.clear()
        users = Counter(each.user for each in self.all())
        self._everywhere = {
            each.user: self.roles[each.role].privileges
            for each in self.at(refs.ROOT)
            if each.propagate and users[each.user] == 1
        }

    def _put_role(self, number: int, name: str, privileges: Iterable[str]) -> None:
        # vSphere API: each role has System.Anonymous, System.View and System.Read; vcsim 0.56 adds them, too.
        self.roles[number] = Role(number, name, frozenset((*READING, *privileges)))
        self._forget()

    def _own_role(self, number: int) -> Role:
        role = self.role(number)
        if role.is_system:
            raise Refusal("InvalidArgument", "A specified parameter was not correct: roleId", invalidProperty="roleId")
        return role

    def _check_name(self, name: str) -> None:
        if not name:
            raise Refusal("InvalidName", "The name '' is invalid.", name=name)
        if any(role.name == name for role in self.roles.values()):
            raise Refusal(
                "AlreadyExists", f"The specified key, name, or identifier '{name}' already exists.", name=name
            )

    def _inherited(self, user: str, entity: Any) -> Privileges:
        # vSphere: a VM inherits from its folder and from its host and cluster at once.
        found = [self._from(user, parent) for parent in self._parents(entity)]
        return reduce(_joined, found, NOTHING)

    def _from(self, user: str, parent: Any) -> Privileges:
        """Return what an object below this one inherits through it."""
        key = (user, parent._moId)
        if key not in self._cached:
            own = self._by_entity.get(parent._moId, {}).get(user)
            # vSphere: a permission that propagates takes the place of what comes from further above.
            is_given = own is not None and own.propagate
            self._cached[key] = self.roles[own.role].privileges if own and is_given else self._inherited(user, parent)
        return self._cached[key]

    def _check_another_administrator(self, entity: Any, user: str) -> None:
        """Refuse to take away the last permission by which anybody may do everything."""
        own = self._by_entity.get(entity._moId, {}).get(user)
        if own and _is_administrators(own) and sum(map(_is_administrators, self.at(entity))) == 1:
            raise Refusal("AuthMinimumAdminPermission", "One administrator must remain on the root folder.")


def _is_administrators(permission: Permission) -> bool:
    return permission.entity == refs.ROOT and permission.role == ADMIN and permission.propagate


def _joined(some: Privileges, others: Privileges) -> Privileges:
    return EVERYTHING if some is EVERYTHING or others is EVERYTHING else some | others


def _not_found() -> Refusal:
    return Refusal("NotFound", "The object or item referred to could not be found.")

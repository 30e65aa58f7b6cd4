"""A user as the API server knows it: a name and groups."""

from __future__ import annotations

from dataclasses import dataclass

from vgpuctl.sim.kube.objects import Object

#: Kubernetes: members of this group may do everything, whatever the RBAC objects say.
MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
ACCOUNTS = "system:serviceaccounts"
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class User:
    """`uid`: of the ServiceAccount, if it is one."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @property
    def may_do_all(self) -> bool:
        return MASTERS in self.groups

    def document(self) -> Object:
        """Return the user as reviews show it."""
        found: Object = {"username": self.name}
        return found | ({"uid": self.uid} if self.uid else {}) | {"groups": list(self.groups)}


ADMIN = User("admin", (MASTERS, AUTHENTICATED))


def service_account(namespace: str, name: str, uid: str = "") -> User:
    groups = (ACCOUNTS, f"{ACCOUNTS}:{namespace}", AUTHENTICATED)
    return User(account_name(namespace, name), groups, uid)


def account_name(namespace: str, name: str) -> str:
    """Return the user name of a ServiceAccount."""
    return f"{_ACCOUNT}{namespace}:{name}"


def account_of(user: str) -> tuple[str, str] | None:
    """Return namespace and name of the ServiceAccount, or None if the user name is not one's."""
    namespace, _, name = user.removeprefix(_ACCOUNT).partition(":")
    return (namespace, name) if user.startswith(_ACCOUNT) and namespace and name else None

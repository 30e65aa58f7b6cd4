"""The AuthorizationManager: two roles, each granted to one user at the root, and queries about them."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory import refs
from vgpuctl.sim.vcenter.inventory.objects import MANAGERS
from vgpuctl.sim.vcenter.wire import faults, rights
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.vmomi import vim

RIGHTS = MANAGERS["AuthorizationManager"]
#: vSphere: the numbers of two system roles; vcsim 0.56 has the same.
_ADMIN, _READ_ONLY = -1, -2
_EntityPrivilege = vim.AuthorizationManager.EntityPrivilege
_Granted = vim.AuthorizationManager.PrivilegeAvailability


# vSphere API: so a client can ask for its rights before it acts.
@handles("HasPrivilegeOnEntities")
def has_privilege_on_entities(call: Call, entities: list[Any], session_id: str, privileges: list[str]) -> Any:
    return _of_session(call, entities, session_id, privileges)


@handles("HasUserPrivilegeOnEntities")
def has_user_privilege_on_entities(call: Call, entities: list[Any], user: str, privileges: list[str]) -> Any:
    account = call.center.sessions.accounts.get(user)
    if account is None:
        raise faults.invalid_argument("userName")
    return _answers(call, entities, account.read_only, privileges)


@handles("HasPrivilegeOnEntity")
def has_privilege_on_entity(call: Call, entity: Any, session_id: str, privileges: list[str]) -> Any:
    (answer,) = _of_session(call, [entity], session_id, privileges)
    return [each.isGranted for each in answer.privAvailability]


@handles("RetrieveEntityPermissions")
def retrieve_entity_permissions(call: Call, entity: Any, inherited: bool) -> Any:
    if not call.center.find(entity, call.session):
        raise faults.not_found(entity)
    return _permissions(call) if inherited or entity == refs.ROOT else []


@handles("RetrieveAllPermissions")
def retrieve_all_permissions(call: Call) -> Any:
    return _permissions(call)


@RIGHTS("roleList")
def _roles(_: Any, __: Any) -> list[Any]:
    return [
        _role(_ADMIN, "Admin", "Administrator", "Full access rights"),
        _role(_READ_ONLY, "ReadOnly", "Read-only", "See details of objects, but not make changes"),
    ]


def _role(number: int, name: str, label: str, summary: str) -> Any:
    description = vim.Description(label=label, summary=summary)
    privileges = list(rights.READING if number == _READ_ONLY else rights.all_privileges())
    return vim.AuthorizationManager.Role(roleId=number, system=True, name=name, info=description, privilege=privileges)


def _permissions(call: Call) -> list[Any]:
    return [
        vim.AuthorizationManager.Permission(
            entity=refs.ROOT,
            principal=account.name,
            group=False,
            roleId=_READ_ONLY if account.read_only else _ADMIN,
            propagate=True,
        )
        for account in call.center.sessions.accounts.values()
    ]


def _of_session(call: Call, entities: list[Any], session_id: str, privileges: list[str]) -> list[Any]:
    session = call.center.sessions.find(session_id)
    if session is None:
        raise faults.invalid_argument("sessionId")
    return _answers(call, entities, session.read_only, privileges)


def _answers(call: Call, entities: list[Any], read_only: bool, privileges: list[str]) -> list[Any]:
    for entity in entities:
        if not call.center.find(entity, call.session):
            raise faults.not_found(entity)
    granted = [_Granted(privId=each, isGranted=rights.has_privilege(read_only, each)) for each in privileges]
    return [_EntityPrivilege(entity=entity, privAvailability=granted) for entity in entities]

"""The AuthorizationManager: roles, permissions on objects, and queries about them."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory.objects import MANAGERS
from vgpuctl.sim.vcenter.inventory.permissions import EVERYTHING, Permission, Privileges, Role
from vgpuctl.sim.vcenter.wire import faults, rights
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.vmomi import vim

RIGHTS = MANAGERS["AuthorizationManager"]
_EntityPrivilege = vim.AuthorizationManager.EntityPrivilege
_Granted = vim.AuthorizationManager.PrivilegeAvailability


@handles("AddAuthorizationRole")
def add_authorization_role(call: Call, name: str, privileges: list[str]) -> int:
    _check_names(privileges)
    return call.center.permissions.add_role(name, privileges)


@handles("UpdateAuthorizationRole")
def update_authorization_role(call: Call, number: int, name: str, privileges: list[str]) -> None:
    _check_names(privileges)
    call.center.permissions.change_role(number, name, privileges)
    call.center.notify_all_changed()


@handles("RemoveAuthorizationRole")
def remove_authorization_role(call: Call, number: int, fail_if_used: bool) -> None:
    call.center.permissions.remove_role(number, fail_if_used=fail_if_used)
    call.center.notify_all_changed()


@handles("SetEntityPermissions")
def set_entity_permissions(call: Call, entity: Any, given: list[Any]) -> None:
    """Set a permission for each user. Those of other users on the object stay."""
    _check_entities(call, [entity])
    unknown = [each.principal for each in given if each.group or each.principal not in call.center.sessions.accounts]
    if unknown:
        # Groups are not simulated, so each is unknown.
        raise vim.fault.UserNotFound(msg="The user was not found.", principal=unknown[0], unresolved=True)
    for each in given:
        call.center.permissions.set(Permission(entity, each.principal, each.roleId, bool(each.propagate)))
    call.center.notify_all_changed()


@handles("RemoveEntityPermission")
def remove_entity_permission(call: Call, entity: Any, user: str, is_group: bool) -> None:
    _check_entities(call, [entity])
    call.center.permissions.remove(entity, "" if is_group else user)
    call.center.notify_all_changed()


# vSphere API: so a client can ask for its rights before it acts.
@handles("HasPrivilegeOnEntities")
def has_privilege_on_entities(call: Call, entities: list[Any], session_id: str, privileges: list[str]) -> Any:
    return _answers(call, entities, _user_of(call, session_id), privileges)


@handles("HasUserPrivilegeOnEntities")
def has_user_privilege_on_entities(call: Call, entities: list[Any], user: str, privileges: list[str]) -> Any:
    return _answers(call, entities, _known_user(call, user), privileges)


@handles("HasPrivilegeOnEntity")
def has_privilege_on_entity(call: Call, entity: Any, session_id: str, privileges: list[str]) -> Any:
    (answer,) = _answers(call, [entity], _user_of(call, session_id), privileges)
    return [each.isGranted for each in answer.privAvailability]


@handles("FetchUserPrivilegeOnEntities")
def fetch_user_privilege_on_entities(call: Call, entities: list[Any], user: str) -> Any:
    _check_entities(call, entities)
    kind = vim.AuthorizationManager.UserPrivilegeResult
    granted = ((entity, call.center.permissions.on(_known_user(call, user), entity)) for entity in entities)
    return [kind(entity=entity, privileges=_named(privileges)) for entity, privileges in granted]


@handles("RetrieveEntityPermissions")
def retrieve_entity_permissions(call: Call, entity: Any, inherited: bool) -> Any:
    _check_entities(call, [entity])
    permissions = call.center.permissions
    return [_as_wire(each) for each in (*permissions.at(entity), *(permissions.above(entity) if inherited else ()))]


@handles("RetrieveAllPermissions")
def retrieve_all_permissions(call: Call) -> Any:
    return [_as_wire(each) for each in call.center.permissions.all()]


@handles("RetrieveRolePermissions")
def retrieve_role_permissions(call: Call, number: int) -> Any:
    role = call.center.permissions.role(number)
    return [_as_wire(each) for each in call.center.permissions.all() if each.role == role.number]


@RIGHTS("roleList")
def _roles(context: Any, __: Any) -> list[Any]:
    return [_role(each) for each in context.center.permissions.roles.values()]


@RIGHTS("privilegeList")
def _privileges(_: Any, __: Any) -> list[Any]:
    kind = vim.AuthorizationManager.Privilege
    split = ((name, *name.rpartition(".")[::2]) for name in rights.all_privileges())
    return [kind(privId=name, onParent=False, name=last, privGroupName=group) for name, group, last in split]


def _role(role: Role) -> Any:
    label, summary = role.words if role.is_system else (role.name, role.name)
    return vim.AuthorizationManager.Role(
        roleId=role.number,
        system=role.is_system,
        name=role.name,
        info=vim.Description(label=label, summary=summary),
        privilege=_named(role.privileges),
    )


def _named(privileges: Privileges) -> list[str]:
    return rights.all_privileges() if privileges is EVERYTHING else sorted(privileges)


def _as_wire(permission: Permission) -> Any:
    return vim.AuthorizationManager.Permission(
        entity=permission.entity,
        principal=permission.user,
        group=False,
        roleId=permission.role,
        propagate=permission.propagate,
    )


def _user_of(call: Call, session_id: str) -> str:
    session = call.center.sessions.find(session_id)
    if session is None:
        raise faults.invalid_argument("sessionId")
    return session.user


def _known_user(call: Call, user: str) -> str:
    if user not in call.center.sessions.accounts:
        raise faults.invalid_argument("userName")
    return user


def _check_names(privileges: list[str]) -> None:
    known = rights.all_privileges()
    if not all(each in known for each in privileges):
        raise faults.invalid_argument("privIds")


def _check_entities(call: Call, entities: list[Any]) -> None:
    for entity in entities:
        if not call.center.find(entity, call.session):
            raise faults.not_found(entity)


def _answers(call: Call, entities: list[Any], user: str, privileges: list[str]) -> list[Any]:
    _check_entities(call, entities)
    found = []
    for entity in entities:
        granted = call.center.permissions.on(user, entity)
        available = [_Granted(privId=each, isGranted=each in granted) for each in privileges]
        found.append(_EntityPrivilege(entity=entity, privAvailability=available))
    return found

"""The types of events that happen here, and their texts."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.wire.metadata import wire_type
from vgpuctl.sim.vcenter.wire.vmomi import vim

_AT = "{vm.name} on {host.name} in {datacenter.name}"
#: vSphere's own texts, most of them as vcsim 0.56 has them.
_TEXTS = {
    "UserLoginSessionEvent": ("User login", "User {userName}@{ipAddress} logged in as {userAgent}"),
    "UserLogoutSessionEvent": (
        "User logout",
        "User {userName}@{ipAddress} logged out (login time: {loginTime}, number of API invocations: {callCount},"
        " user agent: {userAgent})",
    ),
    "BadUsernameSessionEvent": ("Invalid user name", "Cannot login {userName}@{ipAddress}"),
    "SessionTerminatedEvent": ("Session terminated", "Session of user {terminatedUsername} was terminated"),
    "VmStartingEvent": ("VM starting", "{vm.name} on host {host.name} in {datacenter.name} is starting"),
    "VmResumingEvent": ("VM resuming", f"{_AT} is resumed"),
    "VmPoweredOnEvent": ("VM powered on", f"{_AT} is powered on"),
    "VmStoppingEvent": ("VM stopping", "{vm.name} on host {host.name} in {datacenter.name} is stopping"),
    "VmPoweredOffEvent": ("VM powered off", f"{_AT} is powered off"),
    "VmSuspendingEvent": ("VM being suspended", f"{_AT} is being suspended"),
    "VmSuspendedEvent": ("VM suspended", f"{_AT} is suspended"),
    "VmReconfiguredEvent": ("VM reconfigured", f"Reconfigured {_AT}"),
    "VmClonedEvent": ("VM cloned", "Clone of {sourceVm.name} completed"),
    "VmRemovedEvent": ("VM removed", "Removed {vm.name} on {host.name} from {datacenter.name}"),
    "VmFailedMigrateEvent": ("Cannot migrate VM", "Failed to migrate {vm.name} from {host.name}. {reason.msg}"),
    "VmFailedToPowerOnEvent": ("Cannot power on VM", "Cannot power on {vm.name} on {host.name}. {reason.msg}"),
    "VmFailedToPowerOffEvent": ("Cannot power off VM", "Cannot power off {vm.name} on {host.name}. {reason.msg}"),
    "VmFailedToSuspendEvent": ("Cannot suspend VM", "Cannot suspend {vm.name} on {host.name}. {reason.msg}"),
}


def message(kind: str, event: Any) -> str:
    return _TEXTS[kind][1].format_map(_Fields(event))


def descriptions() -> list[Any]:
    return [
        vim.event.EventDescription.EventDetail(
            key=wire_type(kind),
            description=description,
            category=_category(kind),
            formatOnDatacenter=text,
            formatOnComputeResource=text,
            formatOnHost=text,
            formatOnVm=text,
            fullFormat=text,
        )
        for kind, (description, text) in _TEXTS.items()
    ]


def category_of(event: Any) -> str:
    return _category(event._wsdlName)


def _category(kind: str) -> str:
    return "error" if "Failed" in kind or "Bad" in kind else "info"


class _Fields:
    """Gives an event's properties to a format string."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def __getitem__(self, name: str) -> Any:
        return getattr(self._event, name)

"""What vgpuctl may need to do in vCenter: the one table, for `vgpuctl rights vcenter` and its reference page.

A test compares it with the calls that vgpuctl sends. No privilege is here that no call uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: The role that every vCenter has, with System.Anonymous, System.View and System.Read.
READ_ONLY = "ReadOnly"
WORKER_ROLE = "vgpuctl-worker"


class Place(StrEnum):
    """The objects that a privilege belongs to. A permission there holds for all objects below it."""

    WORKERS = "the folder of the workers' VMs"
    HOSTS = "the cluster of their hosts"
    DATASTORES = "their datastores"


@dataclass(frozen=True, slots=True, kw_only=True)
class Privilege:
    """One privilege on the objects of one place. `devices`: only commands that change a VM's vGPU need it.

    `inferred`: no document says outright that this is the privilege.
    """

    name: str
    place: Place
    purpose: str
    without: str
    devices: bool = False
    inferred: bool = False


# vSphere API: the privileges of PowerOnVM_Task, SuspendVM_Task, PowerOffVM_Task and ShutdownGuest are in the metadata
# of each method. ReconfigVM_Task lists which privilege each kind of change needs.
PRIVILEGES: tuple[Privilege, ...] = (
    Privilege(
        name="VirtualMachine.Interact.PowerOn",
        place=Place.WORKERS,
        purpose="starting and resuming workers",
        without="a plan that wakes workers ends with 5",
    ),
    Privilege(
        name="VirtualMachine.Interact.Suspend",
        place=Place.WORKERS,
        purpose="suspending workers",
        without="a plan that suspends workers ends with 5; with asleep: off none does",
    ),
    Privilege(
        name="VirtualMachine.Interact.PowerOff",
        place=Place.WORKERS,
        purpose="shutting a guest down, and powering off a VM where that is allowed",
        without="a plan that restarts workers ends with 5, and with asleep: off each switch",
    ),
    Privilege(
        name="VirtualMachine.Config.AddRemoveDevice",
        place=Place.WORKERS,
        purpose="attaching and removing vGPUs",
        without="a provision that changes vGPUs ends with 5",
        devices=True,
    ),
    Privilege(
        name="VirtualMachine.Config.Resource",
        place=Place.WORKERS,
        purpose="reserving all memory of a VM with a vGPU",
        without="a provision that attaches vGPUs ends with 5",
        devices=True,
        # The API's page names it for "resource allocations", not for memoryReservationLockedToMax by name.
        inferred=True,
    ),
    Privilege(
        name="VirtualMachine.Config.AdvancedConfig",
        place=Place.WORKERS,
        purpose="the address space that cards with large BARs need",
        without="a provision that attaches vGPUs of such a card ends with 5",
        devices=True,
    ),
    Privilege(
        name="System.Read",
        place=Place.WORKERS,
        purpose="their power state, devices, memory and tasks",
        without="whatever acts ends with 5; if their hosts are not seen either, every command that looks at workers",
    ),
    Privilege(
        name="System.Read",
        place=Place.HOSTS,
        purpose="cards, the VMs on them, memory, and what HA and DRS may do",
        without="no card is known, and a plan that changes VMs is refused",
    ),
    Privilege(
        name="System.Read",
        place=Place.DATASTORES,
        purpose="the room for suspended VMs",
        without="nothing is known of that room, and the plan says so",
    ),
)


def privileges(place: Place, *, devices: bool = True) -> tuple[Privilege, ...]:
    """Return the privileges that this place needs. `devices`: also those for changing a VM's vGPU."""
    return tuple(each for each in PRIVILEGES if each.place is place and (devices or not each.devices))

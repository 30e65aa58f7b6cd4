"""vSphere's faults in plain words: what happened, what to do, and whether a retry helps."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from vgpuctl.model.errors import PassingError, RequestFailedError, TryAgainError, UnreachableError, VgpuctlError


@dataclass(frozen=True, slots=True)
class Explanation:
    """A fault in plain words. `passing`: a retry may help. `own`: no cause outside the VM itself is known."""

    text: str
    passing: bool = False
    own: bool = False


_EXPLAINED = {
    # vSphere: `graphicsInfo` may lag behind a suspend, so a card may have room a moment later.
    "InsufficientGraphicsResourcesFault": Explanation("no card of the host had room for its vGPU", passing=True),
    "TaskInProgress": Explanation("another task of vCenter runs on the VM", passing=True),
    "ConcurrentAccess": Explanation("another client changed the VM at the same moment", passing=True),
    "InvalidPowerState": Explanation("its power state had changed", passing=True),
    # vSphere: all memory of a VM with a vGPU is reserved, so a waking one needs that of the sleeping ones.
    "InsufficientMemoryResourcesFault": Explanation("its host has not enough free memory", passing=True),
    "HostNotConnected": Explanation("its host is not connected to vCenter", passing=True),
    # vSphere API: what these say is no reason to discard a suspended state; the host may be back in a minute.
    "HostNotReachable": Explanation("vCenter cannot reach its host", passing=True),
    "HostCommunication": Explanation("vCenter lost its host meanwhile", passing=True),
    "NoDiskSpace": Explanation("its datastore has not enough free space"),
    "NoCompatibleHost": Explanation("no host of the cluster can run it"),
    "ToolsUnavailable": Explanation("VMware Tools do not answer in its guest, so the guest cannot be shut down"),
    "InvalidDeviceBacking": Explanation("its host does not know this vGPU type"),
    "InsufficientFailoverResourcesFault": Explanation("HA admission control forbids its start", passing=True),
}

HINT = "vgpuctl rights vcenter prints the privileges that vgpuctl needs, as govc commands."
_FORBIDDEN = {"NoPermission", "NotAuthenticated", "RestrictedVersion", "InvalidLogin"}

#: vSphere reports a full card also as text: "The amount of graphics resource available in the parent resource pool is
#: insufficient for the operation.", or "No graphics device is available for vGPU 'nvidia_a40-1a'."
_GRAPHICS_WORDS = ("graphics resource", "no graphics device is available")


def explain(fault: Any) -> Explanation:
    """Explain a fault by its type, or else by its text."""
    name = type(fault).__name__.rsplit(".", 1)[-1]
    message = getattr(fault, "msg", None) or _inner(fault) or name
    known = _EXPLAINED.get(name)
    if known is None and any(words in message.lower() for words in _GRAPHICS_WORDS):
        known = _EXPLAINED["InsufficientGraphicsResourcesFault"]
    if known is None:
        return Explanation(f"{message} ({name})", own=name not in _FORBIDDEN)
    return Explanation(f"{known.text} ({name})", known.passing)


def _inner(fault: Any) -> str:
    messages = getattr(fault, "faultMessage", None) or ()
    return next((message.message for message in messages if message.message), "")


@contextmanager
def translated(server: str) -> Iterator[None]:
    """Turn every error inside into one of our own."""
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    try:
        yield
    except VgpuctlError:
        raise
    # vSphere: after a logout some servers answer ManagedObjectNotFound. Both mean that a new login is needed.
    except (vim.fault.NotAuthenticated, vmodl.fault.ManagedObjectNotFound) as fault:
        # Check this before NoPermission: in vSphere, NotAuthenticated is a kind of it.
        raise PassingError(f"the session with vCenter {server} has ended") from fault
    except vim.fault.NoPermission as fault:
        raise UnreachableError(
            f"vCenter {server} does not allow this user to do that ({fault.privilegeId}).",
            hint=HINT,
        ) from fault
    except vmodl.MethodFault as fault:
        explanation = explain(fault)
        raise (TryAgainError if explanation.passing else RequestFailedError)(explanation.text) from fault
    # Checked before OSError, because in Python it is a kind of it.
    except ssl.SSLCertVerificationError as error:
        raise UnreachableError(
            f"The certificate of vCenter {server} is not trusted: {error.verify_message}.",
            hint="Give its CA with --ca-file FILE, or pin its certificate with --thumbprint.",
        ) from error
    except (OSError, HTTPException) as error:
        raise PassingError(
            f"vCenter {server} does not answer: {_without_number(error)}.", hint="Check the address of vCenter."
        ) from error


def _without_number(error: Exception) -> str:
    """Return the error's text without the operating system's number: `Connection refused`."""
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def garbled(server: str, why: str) -> PassingError:
    return PassingError(
        f"vCenter {server} answers, but not as a vCenter does ({why}).", hint="Check the address of vCenter."
    )

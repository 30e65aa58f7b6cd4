"""Passwords kept elsewhere: in a file that only its owner can read, or in the system's keyring."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from vgpuctl.model.errors import UsageError

MAX_BYTES = 4096
ROOT = 0


def from_file(path: Path, what: str = "password") -> str:
    """Read a file with a password, or with a token (`what`).

    The open file itself is checked: links are followed, and it cannot be swapped meanwhile.
    """
    try:
        # A pipe must not block us before it is refused.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"The {what} file {path} cannot be read: {error.strerror}.") from None
    try:
        found = os.fstat(descriptor)
        problem = open_to_others(found, os.geteuid())
        if problem:
            raise UsageError(f"The {what} file {path} {problem}.", hint=_hint(path, found))
        return _password(os.read(descriptor, MAX_BYTES + 1), path, what)
    finally:
        os.close(descriptor)


def open_to_others(file: os.stat_result, me: int) -> str | None:
    """Return why the file is not private enough for a password; None if it is.

    Kubernetes mounts a Secret as root's and lets the pod's group read it (fsGroup gives it 0440). So the group may read
    a file that root owns; all others never.
    """
    if not stat.S_ISREG(file.st_mode):
        return "is not a regular file"
    if file.st_uid not in {me, ROOT}:
        return "belongs to another user"
    allowed = 0o740 if file.st_uid == ROOT else 0o700
    mode = stat.S_IMODE(file.st_mode)
    return f"can be read by other users: its mode is {mode:04o}" if mode & ~allowed else None


def _hint(path: Path, file: os.stat_result) -> str | None:
    if not stat.S_ISREG(file.st_mode):
        return None
    return f"Run chmod 600 {path}. For a Secret in a pod, set defaultMode: 0400 and an fsGroup."


def _password(data: bytes, path: Path, what: str) -> str:
    if len(data) > MAX_BYTES:
        raise UsageError(f"The {what} file {path} is larger than {MAX_BYTES} bytes.")
    try:
        text = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise UsageError(f"The {what} file {path} is not UTF-8 text.") from None
    if not text or "\n" in text:
        raise UsageError(f"The {what} file {path} must contain one line, the {what}.")
    return text


def from_keyring(server: str, user: str) -> str:
    """Read a password that the keyring's own tool wrote: keyring set vgpuctl:SERVER USER."""
    try:
        import keyring  # noqa: PLC0415
        from keyring.errors import KeyringError  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            "The keyring's library is not installed.", hint="Install it with: pip install 'vgpuctl[keyring]'"
        ) from None
    service = f"vgpuctl:{server}"
    try:
        found = keyring.get_password(service, user)
    except KeyringError as error:
        raise UsageError(f"The keyring cannot be used: {type(error).__name__}.", hint=str(error) or None) from None
    if not found:
        raise UsageError(
            f"The keyring has no password for {user} at {server}.", hint=f"Store it with: keyring set {service} {user}"
        )
    return found

"""Checks a laboratory's folder: no other user may have made it, write into it, or redirect it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vgpuctl.sim.errors import SimError

ROOT = 0
#: Linux follows no more than these either.
MAX_LINKS = 40
_CHOOSE_ANOTHER = "Choose another folder with --dir."


def create_folder(path: Path) -> Path:
    """Create the folder if it is missing, for its owner alone whatever the umask is. Returns its real path."""
    real = owned_folder(path)
    with _os_errors_as_sim_errors(path):
        for folder in reversed([real, *real.parents]):
            if not folder.exists():
                folder.mkdir(mode=0o700)
                folder.chmod(0o700)
    return owned_folder(real)


def create_subfolder(folder: Path, name: str) -> Path:
    """Create a folder in ours. A link is refused: it could lead to files that should not be overwritten."""
    if (folder / name).is_symlink():
        raise SimError(f"{folder / name} is a link.", hint=f"Remove it: rm {folder / name}")
    return create_folder(folder / name)


def owned_folder(path: Path) -> Path:
    """Return the folder's real path; it may not exist yet. Refused if another user could put files of theirs there."""
    with _os_errors_as_sim_errors(path):
        real = _resolve_links(path.absolute())
        for parent in real.parents:
            _refuse_if_replaceable(parent, path)
        if real.exists():
            _refuse_if_not_ours(real, path)
    return real


def new_file(path: Path, mode: int) -> int:
    """Open a file that did not exist before. No link is followed, and no earlier file's permissions are kept."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    os.fchmod(handle, mode)
    return handle


@contextmanager
def _os_errors_as_sim_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SimError(f"The folder {path} cannot be used: {error.strerror}.", hint=_CHOOSE_ANOTHER) from None


def _resolve_links(path: Path) -> Path:
    """Follow links one by one and refuse those of other users, for every user can make a link in /tmp."""
    here, ahead, links = Path(path.anchor), list(path.parts[1:]), 0
    while ahead:
        step = ahead.pop(0)
        here = here.parent if step == ".." else here / step
        if here.is_symlink():
            links += 1
            if links > MAX_LINKS:
                raise SimError(f"{path} leads through too many links.", hint=_CHOOSE_ANOTHER)
            if here.lstat().st_uid not in {os.geteuid(), ROOT}:
                raise SimError(f"{here} is a link that another user made.", hint=_CHOOSE_ANOTHER)
            target = here.parent / here.readlink()
            here, ahead = Path(target.anchor), [*target.parts[1:], *ahead]
    return here


def _refuse_if_replaceable(parent: Path, path: Path) -> None:
    """In a folder where every user may write, only the sticky bit keeps others from replacing ours."""
    if parent.exists():
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise SimError(
                f"Any user can replace the folder {path}: the mode of {parent} is {stat.S_IMODE(mode):04o}.",
                hint=f"Set the sticky bit, chmod +t {parent}, or choose another folder with --dir.",
            )


def _refuse_if_not_ours(real: Path, path: Path) -> None:
    found = real.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise SimError(f"{path} is not a folder.", hint=_CHOOSE_ANOTHER)
    if found.st_uid != os.geteuid():
        raise SimError(f"The folder {path} belongs to another user.", hint=f"It will hold passwords. {_CHOOSE_ANOTHER}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        shared = found.st_mode & stat.S_ISVTX
        raise SimError(
            f"Other users may write into the folder {path}: its mode is {stat.S_IMODE(found.st_mode):04o}.",
            hint=f"Choose one in it: --dir {real / 'lab'}" if shared else f"chmod go-w {real}",
        )

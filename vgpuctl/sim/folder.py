"""The folder of a laboratory: no other user may have made it, write into it, or lead it elsewhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vgpuctl.sim.errors import SimError

ROOT = 0
#: As many as Linux follows.
MOST_LINKS = 40
_ANOTHER = "Choose another folder with --dir."


def made(path: Path) -> Path:
    """The folder, made where it is missing: for its owner alone, whatever the umask is."""
    real = ours(path)
    with _told(path):
        for folder in reversed([real, *real.parents]):
            if not folder.exists():
                folder.mkdir(mode=0o700)
                folder.chmod(0o700)
    return ours(real)


def made_within(folder: Path, name: str) -> Path:
    """A folder in ours, and no link: it might lead to files that nobody meant to be written anew."""
    if (folder / name).is_symlink():
        raise SimError(f"{folder / name} is a link.", hint=f"Take it away: rm {folder / name}")
    return made(folder / name)


def ours(path: Path) -> Path:
    """Where the folder really is; it may be missing. Refused where another user could put files of theirs there."""
    with _told(path):
        real = _followed(path.absolute())
        for parent in real.parents:
            _refuse_if_exchangeable(parent, path)
        if real.exists():
            _refuse_if_others(real, path)
    return real


def new_file(path: Path, mode: int) -> int:
    """A handle on a file that was not there before: no link is followed, no earlier file's permissions are kept."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    os.fchmod(handle, mode)
    return handle


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SimError(f"The folder {path} cannot be used: {error.strerror}.", hint=_ANOTHER) from None


def _followed(path: Path) -> Path:
    """Links are followed one by one, for anybody can make one in /tmp. Those of other users lead nowhere."""
    here, ahead, links = Path(path.anchor), list(path.parts[1:]), 0
    while ahead:
        step = ahead.pop(0)
        here = here.parent if step == ".." else here / step
        if here.is_symlink():
            links += 1
            if links > MOST_LINKS:
                raise SimError(f"{path} leads through too many links.", hint=_ANOTHER)
            if here.lstat().st_uid not in {os.geteuid(), ROOT}:
                raise SimError(f"{here} is a link that another user made.", hint=_ANOTHER)
            target = here.parent / here.readlink()
            here, ahead = Path(target.anchor), [*target.parts[1:], *ahead]
    return here


def _refuse_if_exchangeable(parent: Path, path: Path) -> None:
    """Where everybody may write, only the sticky bit keeps others from putting their folder in the place of ours."""
    if parent.exists():
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise SimError(
                f"Every user may exchange the folder {path}: the mode of {parent} is {stat.S_IMODE(mode):04o}.",
                hint=f"Set the sticky bit, chmod +t {parent}, or choose another folder with --dir.",
            )


def _refuse_if_others(real: Path, path: Path) -> None:
    found = real.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise SimError(f"{path} is no folder.", hint=_ANOTHER)
    if found.st_uid != os.geteuid():
        raise SimError(f"The folder {path} belongs to another user.", hint=f"Passwords will lie there. {_ANOTHER}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        shared = found.st_mode & stat.S_ISVTX
        raise SimError(
            f"Other users may write into the folder {path}: its mode is {stat.S_IMODE(found.st_mode):04o}.",
            hint=f"Choose one in it: --dir {real / 'lab'}" if shared else f"chmod go-w {real}",
        )

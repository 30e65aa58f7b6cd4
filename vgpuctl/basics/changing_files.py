"""Whether a file has changed, without reading it."""

from __future__ import annotations

import os
from pathlib import Path


def fingerprint_of(path: Path) -> tuple[object, ...]:
    """Return what tells a file's contents from others without reading them."""
    # Kubernetes: kubelet renews a mounted ConfigMap by a new folder behind the link `..data`, so the real path changes,
    # while name and size may stay. POSIX: ctime changes also where `cp -p` keeps the mtime, and with the file's rights.
    try:
        real = os.path.realpath(path)
        found = os.stat(real)  # noqa: PTH116
    except OSError as error:
        return str(path), error.errno
    return str(path), real, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
